package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// worker is somebody who changes the cluster.
const worker = "ada@laptop from 192.0.2.7 since 2026-11-21 11:58:00 UTC (2m0s ago), doing `kgpu up inventory.yaml`"

// frames are what commands print outside of the live view.
func frames() map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		"plan": func(w io.Writer) error {
			g := joining()
			for _, host := range []string{"10.0.0.21", "10.0.0.22"} {
				g.Warnings = append(g.Warnings, host+": driver 580 is of a production branch: its support ends in August 2026, and NVIDIA mends nothing after that")
			}
			return PrintPlan(w, plan.WithProof(g), PlanOptions{Verbose: true})
		},
		"errors": func(w io.Writer) error {
			exit := 100
			all := []error{&reason.Error{ID: reason.StepFailed, Host: "w1", Step: "driver/install", Doing: "install the driver 580", Exit: &exit, Detail: "E: Unable to correct problems, you have held broken packages."}}
			for _, host := range []string{"w1", "w2", "w3"} {
				all = append(all,
					&reason.Error{ID: reason.HostSwapOn, Host: host, Doing: preflight.Doing, Detail: "swap is on: /swap.img, and the kubelet does not begin with it unless it is told to"},
					&reason.Error{ID: reason.SSHUnreachable, Host: host, Detail: "connecting to " + host + ".example.org:22: no route to host", Stderr: "debug: a line that the program printed, which is much longer than any terminal that we look at is wide\nand another"})
			}
			PrintError(w, errors.Join(append(all, errors.New("an error that nobody knows, in a file of a long name: /var/lib/kubelet/pods/8f0e9c1a/volumes/kubernetes.io~projected/kube-api-access-abcde/token-of-it"))...))
			return nil
		},
		"status":         func(w io.Writer) error { return PrintStatus(w, healthy(), StatusOptions{}) },
		"status-wide":    func(w io.Writer) error { return PrintStatus(w, healthy(), StatusOptions{Wide: true}) },
		"status-trouble": func(w io.Writer) error { return PrintStatus(w, troubled(), StatusOptions{Wide: true}) },
		"status-at-work": func(w io.Writer) error {
			r := healthy()
			r.Well, r.Cluster.AtWork, r.Hosts[1].AtWork = false, worker, "driver/install"
			return PrintStatus(w, r, StatusOptions{})
		},
		"doctor-at-work": func(w io.Writer) error {
			return PrintDiagnosis(w, &Diagnosis{AtWork: worker, Hosts: diagnosis().Hosts[:1]})
		},
		"doctor": func(w io.Writer) error {
			d := diagnosis()
			hung := doctor.Finding{ID: "GPU_HUNG", Severity: doctor.Error, Evidence: []string{"nvidia-smi gave no answer within 30 seconds, and a task of it is in uninterruptible sleep: pid 4711 since 5 minutes"},
				Cause: "A task is stuck in the driver, and nothing but a reboot ends it: the kernel waits for a card that does not answer.", Fix: "`kgpu doctor --fix` drains the node and reboots the host; does it hang again, the card or its slot is broken"}
			for i := range d.Hosts {
				d.Hosts[i].Findings = append(d.Hosts[i].Findings, hung)
			}
			return PrintDiagnosis(w, d)
		},
		"next": func(w io.Writer) error {
			return PrintNext(w, [][2]string{{"kgpu status --inventory examples/lab.yaml", "hosts, nodes, cards, and who uses them"},
				{"kgpu kubectl --inventory examples/lab.yaml -- apply -f FILE", "runs work of yours; one with a card is examples/workloads/nvidia-smi.yaml"}})
		},
		"explain": PrintReasons,
		"explain-one": func(w io.Writer) error {
			r, _ := reason.Find(string(reason.HostSwapOn))
			return PrintReason(w, r)
		},
	}
}

// Nothing is wider than the terminal but what cannot be broken, and no word is cut, in colour and without.
func TestFramesOutsideOfTheView(t *testing.T) {
	for name, show := range frames() {
		whole := &Sheet{}
		must(t, show(whole))
		known := strings.Fields(whole.String())
		for _, width := range []int{80, 100} {
			sheet, coloured := &Sheet{As: Look{Width: width}}, &Sheet{As: Look{Width: width, Colour: true}}
			must(t, errors.Join(show(sheet), show(coloured)))
			golden(t, fmt.Sprintf("frames/%s-%d.txt", name, width), sheet.String())
			if ansi.Strip(coloured.String()) != sheet.String() {
				t.Errorf("%s: in colour it says something else:\n%s", name, coloured)
			}
			if coloured.String() == sheet.String() {
				t.Errorf("%s has no colour", name)
			}
			for line := range strings.Lines(sheet.String()) {
				line = strings.TrimSuffix(line, "\n")
				words := strings.Fields(line)
				if ansi.StringWidthWc(line) > width && len(words) > 1 {
					t.Errorf("%s is wider than %d: %q", name, width, line)
				}
				for _, word := range words {
					if !slices.Contains(known, word) {
						t.Errorf("%s cuts a word at %d: %q of %q", name, width, word, line)
					}
				}
			}
		}
	}
}

// The lines of a run break at the terminal's width, too, without a picture.
func TestLinesWrap(t *testing.T) {
	sheet := &Sheet{As: Look{Width: 60}}
	s := New(Plain, sheet, Verbose)
	for _, e := range story() {
		s.Emit(e)
	}
	for line := range strings.Lines(sheet.String()) {
		if n := ansi.StringWidthWc(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// Colours are for terminals, for people who want some, and for terminals that have some.
func TestWhoGetsColours(t *testing.T) {
	for _, c := range []struct {
		noColour, term string
		want           bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}, {"", "", true}} {
		t.Setenv("NO_COLOR", c.noColour)
		t.Setenv("TERM", c.term)
		if got := colourWanted(); got != c.want {
			t.Errorf("NO_COLOR=%s TERM=%s: %v", c.noColour, c.term, got)
		}
	}
	if got := LookOf(io.Discard); got != (Look{}) {
		t.Errorf("what is no terminal looks like %+v", got)
	}
}

// GPUs that are shared are counted as shares.
func TestStatusOfSharedGPUs(t *testing.T) {
	r := healthy()
	shared := &r.Hosts[1].GPU.Resources[0]
	shared.Capacity, shared.Allocatable = 8, 8
	r.Cluster.Cards[0].Capacity, r.Cluster.Cards[0].Allocatable = 8, 8
	sheet := &Sheet{}
	must(t, PrintStatus(sheet, r, StatusOptions{}))
	contains(t, sheet.String(),
		"CARDS         1/8 shares of 2 GPUs, mig-1g.5gb 0/7 (used/all)\n", " 1/8 shares of 2 GPUs ",
		"gpu-one  1 share  Running")
}

// What the command line leaves out is not in order already, and the proof's steps are counted as they are done.
func TestPlanCounts(t *testing.T) {
	step := func(host, id string) *graph.Step { return &graph.Step{Ref: graph.Ref{Host: host, ID: id}, Title: id} }
	g := &graph.Graph{Steps: []*graph.Step{step("w1", "os/packages"), step("w1", "kube/packages"), step("cp", "gpu/ready")}}
	g.Skipped = []graph.Skipped{{Ref: graph.Ref{Host: "w1", ID: "os/swap"}, Reason: "no swap is on"}}
	selected, err := g.Select(nil, []string{"kube/*"})
	must(t, err)
	sheet := &Sheet{}
	must(t, PrintPlan(sheet, plan.WithProof(selected), PlanOptions{}))
	contains(t, sheet.String(), "2 hosts, 4 steps to do: 2 first, 2 with the proof of the cards\n",
		"w1: 1 step (1 step in order already, 1 step left out)\n", "cp: 3 steps\n", "gpu/smoke", "gpu/proven")
}
