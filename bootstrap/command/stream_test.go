package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report/schema"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// answering is a host that does as kgpu's scripts do: it says these facts, and of each step what lines has for it. A step
// ends well unless that says otherwise.
type answering struct {
	facts  string
	doctor string // lines of doctor.sh
	lines  map[string]string
	begun  func(*sshtest.Exec) // answers a batch instead; nil: nothing does
}

func (a *answering) exec(e *sshtest.Exec) int {
	switch {
	case strings.Contains(e.Line, "receive.sh") && a.begun != nil:
		a.begun(e)
		return 1
	case strings.Contains(e.Line, "receive.sh"):
		for _, step := range stepsOf(e.Stdin) {
			fmt.Fprintf(e.Stdout, "B\t%s\t0\n", step)
			fmt.Fprint(e.Stdout, a.lines[step])
			if strings.Contains(a.lines[step], "\nE\t") {
				return 1
			}
			fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\n", step)
		}
		fmt.Fprint(e.Stdout, "E\t0\n")
		return 0
	case strings.Contains(e.Line, "exec bash -s "): // the lock, which ends with its input
		runnertest.Lock(e.Stdin, e.Stdout)
		return 0
	case strings.Contains(e.Line, "bash -s"):
		script, _ := io.ReadAll(e.Stdin)
		switch {
		case bytes.Contains(script, []byte("kgpu-reach=1")):
			fmt.Fprint(e.Stdout, "kgpu-reach=1\nend=1\n")
		case bytes.Contains(script, []byte("kgpu-users=1")):
			fmt.Fprint(e.Stdout, "kgpu-users=1\nend=1\n")
		case bytes.Contains(script, []byte("kgpu-notebook=1")):
			fmt.Fprint(e.Stdout, "kgpu-notebook=1\nservice=10.96.0.9:8888\ntoken=dG9rZW4=\nend=1\n")
		case bytes.Contains(script, []byte("kgpu-doctor=1")):
			fmt.Fprintf(e.Stdout, "kgpu-doctor=1\n%send=1\n", a.doctor)
		default:
			fmt.Fprintf(e.Stdout, "kgpu-facts=1\nnow=%d.0\n%send=1\n", time.Now().Unix(), a.facts)
		}
		return 0
	}
	return 127
}

// stepsOf are the steps of a bundle, in order.
func stepsOf(bundle io.Reader) []string {
	zip, err := gzip.NewReader(bundle)
	if err != nil {
		return nil
	}
	var steps []string
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err != nil {
			return steps
		}
		if path.Base(h.Name) == "id" {
			id, _ := io.ReadAll(archive)
			steps = append(steps, strings.TrimSpace(string(id)))
		}
	}
}

const bareFacts = "hostname=cp\nmachine-id=cp\nos-release=ID=ubuntu\nos-release=VERSION_ID=\"24.04\"\nos-release=VERSION_CODENAME=noble\n" +
	"kernel=6.8.0-31-generic\nvirt=kvm\nsystemd=1\ncgroup2=1\ncpus=8\nmemory-kib=16777216\narch=amd64\nledger=0\n"

// inventoryOf writes an inventory of this one host.
func inventoryOf(t *testing.T, h *answering) string {
	t.Helper()
	at := sshtest.Listen(t, sshtest.Config{Exec: h.exec}).Host()
	file := filepath.Join(t.TempDir(), "inventory.yaml")
	text := fmt.Sprintf("kubernetes: {version: 1.36}\nruntime: containerd\nnetwork: weave\nhosts:\n  - {name: cp, address: %s, privateAddress: 10.0.0.1, role: control-plane, ssh: {user: root, port: %d, key: %q, hostKey: %q}}\n",
		at.Address, at.SSH.Port, at.SSH.Key, at.SSH.HostKey)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// anyway is a command line that goes on whatever preflight has to say to these hosts.
func anyway(args ...string) []string {
	args = append([]string{"kgpu"}, args...)
	for _, r := range reason.Table() {
		args = append(args, "--ignore", string(r.ID))
	}
	return args
}

// printedBy is what a command prints on its standard output.
func printedBy(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	app := App("test", Group("", Up(), Plan(), Smoke()))
	app.Writer, app.ErrWriter = &out, t.Output()
	Run(t.Context(), app, anyway(args...))
	return out.String()
}

// Every kind of event that runs tell is as the schema says, and the schema knows no other.
func TestEventsFollowTheirSchema(t *testing.T) {
	bare := &answering{facts: bareFacts, lines: map[string]string{
		"os/packages": "W\tos/packages\tthe package manager, held by apt-get (pid 812)\nL\tos/packages\tReading package lists...\n",
		"os/sysctl":   "D\tos/sysctl\t1\t5\tSTEP_FAILED\tno\nE\t1\n",
	}}
	const card = "GPU-8f0e4a2c-0000-0000-0000-000000000001"
	var seen strings.Builder
	for _, line := range []string{"smi-cp-0\tGPU 0: NVIDIA A100-SXM4-40GB (UUID: " + card + ")", "smi-cp-0\tkgpu-status 0", "smi-cp-0\tkgpu-device /dev/nvidia0",
		"smi-cp-0\tkgpu-sample 0", "smi-cp-0\tkgpu-said Test PASSED", "smi-cp-0\tkgpu-end",
		"none-cp\tNo devices found.", "none-cp\tkgpu-status 6", "none-cp\tkgpu-end", "plain-cp\tkgpu-status 127", "plain-cp\tkgpu-end"} {
		seen.WriteString(line + "\n")
	}
	withCard := &answering{
		facts: bareFacts + "control-plane=1\napi=1\nkubelet-server=https://10.0.0.1:6443\npci=0000:17:00.0 030200 20b0 nvidia\nnvidia-loaded=580.173.02\n" +
			"gpu=" + card + ", NVIDIA A100-SXM4-40GB, 00000000:17:00.0, 40960 MiB, Disabled\n",
		lines: map[string]string{"gpu/smoke": "O\tgpu/smoke\tlogs\t" + base64.StdEncoding.EncodeToString([]byte(seen.String())) + "\n", "addon/notebook": "D\taddon/notebook\t1\t5\tSTEP_FAILED\tno\nE\t1\n"},
	}
	text := printedBy(t, "up", "-o", "json", "-i", inventoryOf(t, bare)) + printedBy(t, "smoke", "-o", "json", "-i", inventoryOf(t, withCard))

	schematest.Printed(t, "event", slices.Collect(strings.Lines(text))...)
	kinds := map[string]bool{}
	for line := range strings.Lines(text) {
		var e struct {
			Event  string `json:"event"`
			Schema int    `json:"schema"`
		}
		must(t, json.Unmarshal([]byte(line), &e))
		if (e.Event == "begin") != (e.Schema == 1) {
			t.Errorf("the version of the stream is in its first event only: %s", line)
		}
		kinds[e.Event] = true
	}
	if first, _, _ := strings.Cut(text, "\n"); !strings.Contains(first, `"event":"begin"`) {
		t.Errorf("the stream begins with %s", first)
	}
	for _, kind := range kindsOf(t) {
		if !kinds[kind] {
			t.Errorf("no event is a %s, in:\n%s", kind, text)
		}
	}
}

// kindsOf are the kinds that the schema knows.
func kindsOf(t *testing.T) []string {
	text, err := schema.Named("event")
	must(t, err)
	var doc struct {
		Properties struct {
			Event struct{ Enum []string }
		}
	}
	must(t, json.Unmarshal(text, &doc))
	if !slices.Contains(doc.Properties.Event.Enum, "proof") {
		t.Fatalf("the kinds are %q", doc.Properties.Event.Enum)
	}
	return doc.Properties.Event.Enum
}

func TestPlansFollowTheirSchema(t *testing.T) {
	file := inventoryOf(t, &answering{facts: bareFacts + "unit=chrony.service active enabled\n"})
	text := printedBy(t, "plan", "-o", "json", "-i", file)
	schematest.Printed(t, "plan", text)
	for _, part := range []string{"steps", "skipped", "warnings"} {
		if strings.Contains(text, fmt.Sprintf("%q: []", part)) {
			t.Errorf("there are no %s, so nothing is shown of them:\n%.500s", part, text)
		}
	}
	if schematest.Fits(schematest.Named(t, "plan"), strings.Replace(text, `"step": "`, `"step": "no step `, 1)) == nil {
		t.Error("any ID is valid")
	}
}
