package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// record leaves what a run of an inventory leaves that prints this.
func record(t *testing.T, inventory, run, printed string) {
	t.Helper()
	at := event.Event{Time: time.Now(), Run: run, Host: "w1", Step: "driver/install"}
	r := begin(t, inventory, run)
	for kind, text := range map[event.Kind]string{event.StepStart: "install the driver", event.Log: printed} {
		e := at
		e.Kind, e.Text = kind, text
		r.Emit(e)
	}
	r.Emit(event.Event{Time: time.Now(), Run: run, Kind: event.Plan, Plan: []event.Planned{{Host: "w1", Step: "driver/install", Title: "install the driver"}}})
	r.End("GPU_DRIVER_FAILED", 40)
}

func begin(t *testing.T, inventory, run string) *history.Recorder {
	t.Helper()
	root, err := history.Root()
	if err != nil {
		t.Fatal(err)
	}
	return history.Begin(root, history.Result{Run: run, Cluster: "lab", Command: "up", Inventory: inventory}, func(err error) { t.Error(err) })
}

// TestRunsInABundle holds that the last runs of this inventory are in the bundle, as kgpu's own commands can read them, without
// secrets.
func TestRunsInABundle(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("KGPU_TEST_SUDO", `a "sudo" & hunter22`)
	secret, err := inventory.ParseSecret("${KGPU_TEST_SUDO}")
	mine, other := filepath.Join(dir, "inventory.yaml"), filepath.Join(dir, "other.yaml")
	if err := errors.Join(err, os.WriteFile(mine, nil, 0o600), os.WriteFile(other, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		record(t, mine, fmt.Sprintf("20260701-10000%d-abcdef", i), `wrong: a "sudo" & hunter22; password="hunter33" of `+fmt.Sprint(i))
	}
	begin(t, mine, "20260701-100005-100002").End("ok", 0) // with nothing to do
	record(t, other, "20260701-110000-abcdef", "of another")
	record(t, filepath.Join(dir, "moved.yaml"), "20260701-120000-abcdef", "before it was moved")

	inv := &inventory.Inventory{Path: mine, Cluster: "lab", Hosts: []inventory.Host{{SSH: inventory.SSH{SudoPassword: secret}}}}
	bundle, file, err := CreateBundle(inv, filepath.Join(dir, "bundle.tar.gz"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	about, err := AddRuns(inv, bundle)
	_, closing := bundle.Close()
	unpacked := t.TempDir()
	out, unpacking := exec.Command("tar", "-xzf", file, "-C", unpacked, "--strip-components=1").CombinedOutput()
	if err := errors.Join(err, closing, unpacking); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	has := func(name, content string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(unpacked, "runs", name)); err != nil || !strings.Contains(string(text), content) {
			t.Errorf("%s: %q, %v, want %q in it", name, text, err, content)
		}
	}
	for _, run := range []string{"20260701-120000-abcdef", "20260701-100004-abcdef", "20260701-100003-abcdef"} {
		has(run+"/plan.json", "driver/install")
		has(run+"/logs/w1/driver+install.log", "== driver/install begun ")
		if want := "run " + run + ": up, ended: 4 files\n"; !strings.Contains(about, want) {
			t.Errorf("about the runs: %s, want %s", about, want)
		}
		read, told, err := history.Open(filepath.Join(unpacked, "runs", run))
		if err != nil {
			t.Fatal(err)
		}
		if events := slices.Collect(told.All()); told.Err() != nil || read.Exit != 40 || len(events) != 3 {
			t.Errorf("%s: %+v, %d events, %v", run, read, len(events), told.Err())
		}
	}
	has("20260701-100004-abcdef/logs/w1/driver+install.log", `wrong: [scrubbed]; password="[scrubbed]" of 4`)
	has("20260701-100004-abcdef/events.jsonl", "of 4")
	err = fs.WalkDir(os.DirFS(unpacked), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(unpacked, name))
		if content := string(text); strings.Contains(content, "hunter") || strings.Contains(content, "of another") || strings.Contains(name, "100002") {
			t.Errorf("%s: %q", name, content)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBundleOverwritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _, err := CreateBundle(&inventory.Inventory{}, file, time.Now())
	var usage *reason.UsageError
	if text, _ := os.ReadFile(file); !errors.As(err, &usage) || string(text) != "mine" {
		t.Errorf("%v; the file has %q", err, text)
	}
	if _, _, err := CreateBundle(&inventory.Inventory{}, filepath.Join(file, "b"), time.Now()); !errors.As(err, &usage) {
		t.Errorf("into a folder that is none: %v", err)
	}
}
