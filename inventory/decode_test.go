package inventory

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testOptions are a fixed day and environment. SUDO and other secrets are not set on purpose: decoding must not look at them.
func testOptions() Options {
	environment := map[string]string{
		"HOME": "/home/me", "CLUSTER": "lab", "PORT": "2222", "FALSE": "false", "USER_NAME": "ops", "ADDRESS": "10.0.0.10",
		"KGPU_LAB_KEY": "/lab/key", "KGPU_LAB_KNOWN_HOSTS": "/lab/known_hosts",
		"KGPU_LAB_FINGERPRINT": strings.Repeat("AB", 20), "KGPU_LAB_CRI_DOCKERD_SHA256": strings.Repeat("ab", 32),
	}
	return Options{
		Env: func(name string) (string, bool) { v, ok := environment[name]; return v, ok },
		Now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	}
}

func glob(t testing.TB, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", p, found, err)
		}
		out = append(out, found...)
	}
	return out
}

func badFiles(t testing.TB) []string { return glob(t, "testdata/bad/*.yaml") }

func goodFiles(t testing.TB) []string { return glob(t, "testdata/good/*.yaml", "../examples/*.yaml") }

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func decodeFile(t *testing.T, path string) (*Inventory, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return Decode(filepath.Base(path), data, testOptions())
}

func TestBadFiles(t *testing.T) {
	files := badFiles(t)
	if len(files) < 60 {
		t.Errorf("only %d bad files", len(files))
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			inv, err := decodeFile(t, path)
			if inv != nil || err == nil {
				t.Fatalf("%+v, %v", inv, err)
			}
			if got := reason.ExitStatus(err); got != reason.Lookup(reason.InventoryInvalid).Exit {
				t.Errorf("exit status %d", got)
			}
			var problems Errors
			if !errors.As(err, &problems) {
				t.Fatalf("%T has no problems", err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", []byte(problems.Error()+"\n"))
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "correct horse") {
				t.Error("a secret is printed")
			}
		})
	}
}

func TestGoodFiles(t *testing.T) {
	for _, path := range goodFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			inv, err := decodeFile(t, path)
			must(t, err)
			got, err := json.MarshalIndent(inv, "", "  ")
			must(t, err)
			name := strings.TrimSuffix(filepath.Base(path), ".yaml") + ".json"
			if strings.HasPrefix(path, "..") {
				name = "example-" + name
			}
			golden(t, filepath.Join("testdata/good", name), append(got, '\n'))
		})
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
