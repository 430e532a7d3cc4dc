package bootstrap

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
)

// examinedHost answers facts.sh and doctor.sh as recorded, with more lines of the latter, and counts what it is asked.
type examinedHost struct {
	fakeHost
	asked atomic.Int32
	more  atomic.Pointer[string]
	known atomic.Pointer[string] // what facts.sh prints
	did   []string
}

func newExamined(t *testing.T, name, recorded, healthy string) *examinedHost {
	t.Helper()
	known, err := os.ReadFile("facts/testdata/" + recorded)
	must(t, err)
	told := content(t, "doctor/testdata/"+healthy)
	h := &examinedHost{fakeHost: fakeHost{name: name}}
	nothing, text := "", string(known)
	h.more.Store(&nothing)
	h.known.Store(&text)
	h.script = func(e *sshtest.Exec, script []byte) int {
		h.asked.Add(1)
		if bytes.Contains(script, []byte("kgpu-doctor=1")) {
			fmt.Fprint(e.Stdout, strings.TrimSuffix(told, "end=1\n"), *h.more.Load(), "end=1\n")
			return 0
		}
		fmt.Fprint(e.Stdout, *h.known.Load())
		return 0
	}
	h.batch = func(e *sshtest.Exec, names []string) int {
		h.did = append(h.did, names...)
		for _, step := range names {
			fmt.Fprintf(e.Stdout, "B\t%s\t0\nD\t%[1]s\t0\t1\t\t\n", step)
		}
		fmt.Fprint(e.Stdout, "E\t0\n")
		return 0
	}
	return h
}

func foundIDs(d *report.Diagnosis) []string {
	var out []string
	for _, f := range d.Findings() {
		if f.ID != "HOST_DRIFT" { // recorded hosts are of no inventory here
			out = append(out, f.Host+" "+f.ID)
		}
	}
	slices.Sort(out)
	return out
}

// Each host is asked two things over one connection; one that cannot be reached is a finding, and the others are told of.
func TestDoctor(t *testing.T) {
	cp, w1, gone := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt"), newExamined(t, "w1", "worker.txt", "healthy-worker.txt"), newExamined(t, "w2", "worker.txt", "healthy-worker.txt")
	o, _ := fakes(t, &cp.fakeHost, &w1.fakeHost, &gone.fakeHost)
	o.Events = event.Discard
	o.Ignore = slices.DeleteFunc(o.Ignore, func(id string) bool { return id == "SSH_UNREACHABLE" || strings.HasPrefix(id, "GPU_") })
	nobody := sitetest.Silent(t, "w2")
	o.Inventory.Hosts[2].Address, o.Inventory.Hosts[2].SSH = nobody.Address, nobody.SSH
	line := "kernel-log=NVRM: Xid (PCI:0000:65:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"
	w1.more.Store(&line)
	d, err := look.Doctor(t.Context(), o.Options, nil, o.Ignore)
	must(t, err)
	if got, want := foundIDs(d), []string{"w1 GPU_GSP_TIMEOUT", "w2 SSH_UNREACHABLE"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if len(d.Hosts) != 3 || !d.Hosts[1].Reached || d.Hosts[2].Reached {
		t.Errorf("the hosts: %+v", d.Hosts)
	}
	for _, h := range []*examinedHost{cp, w1} {
		if n := h.asked.Load(); n != 2 {
			t.Errorf("%s was asked %d things", h.name, n)
		}
	}
	// Of one host: the control plane is asked, and nothing is said of it.
	if d, err = look.Doctor(t.Context(), o.Options, []string{"w1"}, o.Ignore); err != nil || len(d.Hosts) != 1 || !slices.Equal(foundIDs(d), []string{"w1 GPU_GSP_TIMEOUT"}) {
		t.Errorf("%v: %+v", err, d)
	}
	// While kgpu is at work, what it may be changing is not judged.
	told := strings.Replace(*cp.known.Load(), "end=1\n", held+"end=1\n", 1)
	cp.known.Store(&told)
	if d, err = look.Doctor(t.Context(), o.Options, nil, o.Ignore); err != nil || !strings.Contains(d.AtWork, "ada@desk") || !slices.Equal(foundIDs(d), []string{"w2 SSH_UNREACHABLE"}) {
		t.Errorf("%v: %+v", err, d)
	}
	if _, err = look.Doctor(t.Context(), o.Options, []string{"w8"}, o.Ignore); err == nil {
		t.Error("a host that there is not is looked at")
	}
}

// A key that ends soon is told of once: that kgpu up fetches it again is no drift.
func TestKeyThatEndsIsNoDrift(t *testing.T) {
	cp, w1 := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt"), newExamined(t, "w1", "worker.txt", "healthy-worker.txt")
	o, _ := fakes(t, &cp.fakeHost, &w1.fakeHost)
	o.Events = event.Discard
	const path = "/etc/apt/keyrings/kgpu-kubernetes.gpg"
	// The host of the file was set up by an earlier kgpu, which did not put this there.
	preferences := "file=" + strings.Repeat("0", 64) + "  /etc/apt/preferences.d/zz-kgpu-kubernetes\nend=1\n"
	of := strings.Replace(*cp.known.Load(), "end=1\n", preferences, 1)
	cp.known.Store(&of)
	known := fmt.Sprintf("keyring=1 %s\nkeyring-key=%[1]s=pub:-:4096:1:AB:1661519093:%d::-:::scSC::::::23::0:\nend=1\n", path, time.Now().Add(30*24*time.Hour).Unix())
	known = strings.Replace(*w1.known.Load(), "end=1\n", known, 1)
	known = regexp.MustCompile("(?m)^now=.*$").ReplaceAllString(known, fmt.Sprintf("now=%d.0", time.Now().Unix()))
	w1.known.Store(&known)
	d, err := look.Doctor(t.Context(), o.Options, nil, o.Ignore)
	must(t, err)
	if got := foundIDs(d); !slices.Equal(got, []string{"w1 REPO_KEY_ENDS"}) {
		t.Errorf("found %v", got)
	}
	for _, f := range d.Findings() {
		if f.ID == "HOST_DRIFT" && strings.Contains(strings.Join(f.Evidence, "\n"), "repo/") {
			t.Errorf("%s has drifted: %q", f.Host, f.Evidence)
		}
	}
}

// Nothing is done that nobody agreed to, and what is agreed to is what was said.
func TestFix(t *testing.T) {
	cp, w1 := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt"), newExamined(t, "w1", "worker.txt", "healthy-worker.txt")
	o, _ := fakes(t, &cp.fakeHost, &w1.fakeHost)
	o.Events = event.Discard
	o.Ignore = slices.DeleteFunc(o.Ignore, func(id string) bool { return strings.HasPrefix(id, "GPU_") })
	lines := "hold-lost=kubelet\nunit=nvidia-persistenced inactive success 0 enabled\ncard=00000000:66:00.0, Disabled\n"
	w1.more.Store(&lines)
	var asked []Mended
	answer := false
	agree := func(m Mended) (bool, error) {
		asked = append(asked, m)
		return answer, nil
	}
	if _, err := Fix(t.Context(), o, []string{"w1"}, agree); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0].Reboot || len(w1.did) > 0 {
		t.Fatalf("asked %+v, did %v", asked, w1.did)
	}
	contains(t, asked[0].Text, "w1: hold packages again (", "w1: start units that are down (",
		"HOST_HOLD_LOST", "GPU_PERSISTENCE_OFF")
	answer = true
	if _, err := Fix(t.Context(), o, []string{"w1"}, agree); err != nil {
		t.Fatal(err)
	}
	if want := []string{"doctor/hold", "doctor/units"}; !slices.Equal(w1.did, want) {
		t.Errorf("did %v, want %v", w1.did, want)
	}
}

// While the question waits, somebody resets a host, or reboots it: a yes that comes then is none to a repair of what is there
// now. What is left is asked for again.
func TestFixLooksAgain(t *testing.T) {
	mine := func(h *examinedHost, change func(string) string) {
		text := change(*h.known.Load())
		h.known.Store(&text)
	}
	reset := func(h *examinedHost) {
		mine(h, func(s string) string {
			return strings.Replace(sitetest.OfNodes.ReplaceAllString(s, "")+"end=1\n", "ledger=37\n", "ledger=0\n", 1)
		})
	}
	rebooted := func(h *examinedHost) {
		mine(h, func(s string) string { return strings.Replace(s, "boot-id=", "boot-id=5", 1) })
	}
	hung := "card=00000000:66:00.0, Disabled\n"
	log, err := os.ReadFile("doctor/testdata/founding-hung.txt")
	must(t, err)
	for line := range strings.Lines(string(log)) {
		hung += "kernel-log=" + line
	}
	for name, c := range map[string]struct {
		lines   string
		during  func(w1, w2 *examinedHost)
		answers []bool
		w1, w2  bool // is repaired
	}{
		"nothing":                   {"hold-lost=kubelet\n", func(_, _ *examinedHost) {}, []bool{true}, true, true},
		"one is reset":              {"hold-lost=kubelet\n", func(_, w2 *examinedHost) { reset(w2) }, []bool{true, true}, true, false},
		"one is reset, and then no": {"hold-lost=kubelet\n", func(_, w2 *examinedHost) { reset(w2) }, []bool{true, false}, false, false},
		"both are reset":            {"hold-lost=kubelet\n", func(w1, w2 *examinedHost) { reset(w1); reset(w2) }, []bool{true}, false, false},
		"both that hung are reset":  {hung, func(w1, w2 *examinedHost) { reset(w1); reset(w2) }, []bool{true}, false, false},
		"one that hung rebooted":    {hung, func(w1, _ *examinedHost) { rebooted(w1) }, []bool{true, true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			cp, w1, w2 := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt"), newExamined(t, "w1", "worker.txt", "healthy-worker.txt"), newExamined(t, "w2", "worker.txt", "healthy-worker.txt")
			o, _ := fakes(t, &cp.fakeHost, &w1.fakeHost, &w2.fakeHost)
			events := &event.Recorder{}
			o.Events = events
			o.Ignore = slices.DeleteFunc(o.Ignore, func(id string) bool { return strings.HasPrefix(id, "GPU_") })
			w1.more.Store(&c.lines)
			w2.more.Store(&c.lines)
			var asked []string
			_, err := Fix(t.Context(), o, []string{"w1", "w2"}, func(m Mended) (bool, error) {
				asked = append(asked, m.Text)
				switch {
				case len(asked) > len(c.answers):
					return false, nil
				case len(asked) == 1:
					c.during(w1, w2)
				case strings.Contains(m.Text, "w1: ") == strings.Contains(m.Text, "w2: "):
					t.Errorf("asked again for %q", m.Text)
				}
				return c.answers[len(asked)-1], nil
			})
			if err != nil || len(asked) != len(c.answers) || len(w1.did) > 0 != c.w1 || len(w2.did) > 0 != c.w2 {
				t.Errorf("%v, asked %q, w1 did %v, w2 did %v", err, asked, w1.did, w2.did)
			}
			told := slices.ContainsFunc(events.Events(), func(e event.Event) bool {
				return e.Kind == event.Warning && strings.Contains(e.Text, "is not repaired (")
			})
			if told != (name != "nothing") {
				t.Errorf("told of a host that is left alone: %t", told)
			}
		})
	}
}

// A host that does not tell its facts keeps no other from being repaired.
func TestFixBesideAHostThatTellsNothing(t *testing.T) {
	cp, w1, w2 := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt"), newExamined(t, "w1", "worker.txt", "healthy-worker.txt"), newExamined(t, "w2", "worker.txt", "healthy-worker.txt")
	o, _ := fakes(t, &cp.fakeHost, &w1.fakeHost, &w2.fakeHost)
	o.Events = event.Discard
	lines, none := "hold-lost=kubelet\n", "nothing\n"
	w1.more.Store(&lines)
	w2.known.Store(&none)
	if _, err := Fix(t.Context(), o, nil, func(Mended) (bool, error) { return true, nil }); err != nil || len(w1.did) != 1 {
		t.Errorf("%v, did %v", err, w1.did)
	}
}

// A driver that hangs is asked for as what it is: a drain and a reboot.
func TestFixAsksForAReboot(t *testing.T) {
	cp, w1 := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt"), newExamined(t, "w1", "worker.txt", "healthy-worker.txt")
	o, _ := fakes(t, &cp.fakeHost, &w1.fakeHost)
	o.Events = event.Discard
	o.Ignore = slices.DeleteFunc(o.Ignore, func(id string) bool { return strings.HasPrefix(id, "GPU_") })
	log, err := os.ReadFile("doctor/testdata/founding-hung.txt")
	must(t, err)
	lines := ""
	for line := range strings.Lines(string(log)) {
		lines += "kernel-log=" + line
	}
	w1.more.Store(&lines)
	d, err := look.Doctor(t.Context(), o.Options, []string{"w1"}, o.Ignore)
	if err != nil || len(d.Findings()) == 0 || d.Findings()[0].ID != "GPU_HUNG" || d.Findings()[0].Repair != doctor.Reboot {
		t.Fatalf("%v: %+v", err, d)
	}
	asked := 0
	if _, err = Fix(t.Context(), o, []string{"w1"}, func(m Mended) (bool, error) {
		asked++
		for _, want := range []string{"drain node w1", "w1: reboot", "uncordon node w1"} {
			if !m.Reboot || !strings.Contains(m.Text, want) {
				t.Errorf("it does not ask for %q: %+v", want, m)
			}
		}
		return false, nil
	}); err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
