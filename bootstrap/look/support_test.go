package look

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// teller is a host that answers the scripts of Support.
func teller(t *testing.T, name string, support func(*sshtest.Exec) int) inventory.Host {
	t.Helper()
	facts, err := os.ReadFile("../facts/testdata/worker.txt")
	must(t, err)
	server := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
		script, err := io.ReadAll(e.Stdin)
		if err != nil {
			return 1
		}
		if bytes.Contains(script, []byte("kgpu-support=1")) {
			return support(e)
		}
		_, _ = e.Stdout.Write(facts)
		return 0
	}})
	h := server.Host()
	h.Name, h.Role = name, inventory.Worker
	return h
}

func says(lines ...string) func(*sshtest.Exec) int {
	return func(e *sshtest.Exec) int {
		for _, line := range lines {
			fmt.Fprintln(e.Stdout, line)
		}
		return 0
	}
}

func entryOf(name, content string) string {
	return name + " " + base64.StdEncoding.EncodeToString([]byte(content))
}

// asked is what a run of Support gave.
type asked struct {
	err    error
	file   string
	files  map[string]string // by name without the folder that all are in
	said   string
	events event.Recorder
}

func ask(t *testing.T, ctx context.Context, hosts ...inventory.Host) *asked {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	inv := &inventory.Inventory{Path: filepath.Join(dir, "inventory.yaml"), Cluster: "lab", Hosts: hosts,
		Proxy: inventory.Proxy{HTTP: "http://joe:proxy-hunter22@proxy:3128"}}
	must(t, os.WriteFile(inv.Path, []byte("proxy: {http: \"http://joe:proxy-hunter22@proxy:3128\"}\n"), 0o600))
	a := &asked{file: filepath.Join(dir, "bundle.tar.gz"), files: map[string]string{}}
	var out bytes.Buffer
	a.err = Support(ctx, session.Options{Inventory: inv, Run: "r-1", Events: &a.events},
		SupportOptions{File: a.file, Version: "v9", Now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Out: &out})
	a.said = out.String()
	f, err := os.Open(a.file)
	if errors.Is(err, fs.ErrNotExist) {
		return a
	}
	must(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	must(t, err)
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return a
		}
		content, readErr := io.ReadAll(archive)
		must(t, errors.Join(err, readErr))
		name, ok := strings.CutPrefix(header.Name, "kgpu-support-lab-20260701-120000/")
		if !ok {
			t.Errorf("%s is outside of the bundle's folder", header.Name)
		}
		a.files[name] = string(content)
	}
}

func (a *asked) has(t *testing.T, name, content string) {
	t.Helper()
	if got, ok := a.files[name]; !ok || !strings.Contains(got, content) {
		t.Errorf("%s: %q, want %q in it", name, got, content)
	}
}

// TestSupport asks a host that answers, one that lies, and one that is not there.
func TestSupport(t *testing.T) {
	t.Setenv("KGPU_TEST_SUDO", "sudo-hunter22")
	good := teller(t, "w1", says("kgpu-support=1", entryOf("df", "disk\nwith sudo-hunter22 and proxy-hunter22\n"), entryOf("failed", ""), "end=1"))
	secret, err := inventory.ParseSecret("${KGPU_TEST_SUDO}")
	must(t, err)
	good.SSH.SudoPassword = secret
	liar := teller(t, "w2", says("kgpu-support=1", entryOf("../../../etc/passwd", "x"), entryOf("facts", "forged"), entryOf("df", "\x1b[2J"), "end=1"))
	a := ask(t, t.Context(), good, liar, sitetest.Silent(t, "w3"))
	must(t, a.err)
	a.has(t, "about.txt", "kgpu v9")
	a.has(t, "about.txt", "w3: 0 files; w3: connecting to")
	a.has(t, "about.txt", "runs: none is recorded on this machine")
	a.has(t, "inventory.yaml", "joe:[scrubbed]@proxy")
	a.has(t, "hosts/w1/facts.txt", "kgpu-facts=1")
	a.has(t, "hosts/w1/facts.json", `"Hostname"`)
	a.has(t, "hosts/w1/df.txt", "disk\nwith [scrubbed] and [scrubbed]\n")
	a.has(t, "hosts/w1/failed.txt", "")
	a.has(t, "hosts/w2/facts.txt", "kgpu-facts=1")
	a.has(t, "hosts/w2/df.txt", "^[[2J")
	a.has(t, "hosts/w2/error.txt", "2 lines not as kgpu's script prints them")
	a.has(t, "hosts/w3/error.txt", "SSH_UNREACHABLE")
	if len(a.files) != 11 {
		t.Errorf("%d files", len(a.files))
	}
	for name := range a.files {
		if !filepath.IsLocal(name) {
			t.Errorf("%q leads elsewhere", name)
		}
	}
	for _, want := range []string{"from 2 of 3 hosts", a.file, "look through it"} {
		if !strings.Contains(a.said, want) {
			t.Errorf("no %q in %q", want, a.said)
		}
	}
	var warned []string
	for _, e := range a.events.Events() {
		if e.Kind == event.Warning {
			warned = append(warned, e.Host)
		}
	}
	if len(warned) != 2 {
		t.Errorf("warned of %q", warned)
	}
	info, err := os.Stat(a.file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSupportOfAHostWithoutAnEnd holds that a host can neither fill the disk nor keep kgpu from its end.
func TestSupportOfAHostWithoutAnEnd(t *testing.T) {
	endless := teller(t, "w1", func(e *sshtest.Exec) int {
		fmt.Fprintln(e.Stdout, entryOf("df", "disk"))
		chunk := bytes.Repeat([]byte("A"), 1<<16)
		for {
			if _, err := e.Stdout.Write(chunk); err != nil {
				return 1
			}
		}
	})
	a := ask(t, t.Context(), endless)
	must(t, a.err)
	a.has(t, "hosts/w1/df.txt", "disk")
	a.has(t, "hosts/w1/error.txt", "more than a bundle takes")
}

// TestSupportOfNobody ends as the hosts' reason says, and the bundle tells it, too.
func TestSupportOfNobody(t *testing.T) {
	a := ask(t, t.Context(), sitetest.Silent(t, "w1"), sitetest.Silent(t, "w2"))
	if got, want := reason.ExitStatus(a.err), reason.Lookup(reason.SSHUnreachable).Exit; got != want {
		t.Errorf("exit status %d, want %d: %v", got, want, a.err)
	}
	a.has(t, "hosts/w2/error.txt", "SSH_UNREACHABLE")
}

func TestSupportThatIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := ask(t, ctx, teller(t, "w1", func(e *sshtest.Exec) int { cancel(); <-e.Gone; return 1 }))
	if !errors.Is(a.err, &reason.Error{ID: reason.Cancelled}) || len(a.files) != 0 {
		t.Errorf("%v, %d files", a.err, len(a.files))
	}
	if _, err := os.Stat(a.file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a bundle is left: %v", err)
	}
}
