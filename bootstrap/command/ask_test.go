package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// The question before a drain names the pods that lose a card first, all of them, and does not break a name.
func TestDisrupted(t *testing.T) {
	var pods []string
	for i := range 12 {
		pods = append(pods, fmt.Sprintf("default/shop-7d9c5b6f4-%05d", i))
	}
	cards := []string{"ml/train-resnet-0", "ml/train-resnet-1"}
	nodes := []session.Disruption{
		{Node: "gpu-1", Reason: "nouveau is in use: the host reboots", Pods: slices.Concat(pods, cards), WithCards: cards},
		{Node: "gpu-2", Reason: "it leaves the cluster", Pods: cards[:1], WithCards: cards[:1]},
		{Node: "gpu-3", Reason: "it is drained in its turn"}, {Node: "gpu-4", Reason: "so is that"},
		{Node: "gpu-5", Reason: "its driver changes", Unknown: true},
	}
	const want = `Node gpu-1 is drained (nouveau is in use: the host reboots). This ends
  with cards: ml/train-resnet-0, ml/train-resnet-1
  without: default/shop-7d9c5b6f4-00000, default/shop-7d9c5b6f4-00001,
    default/shop-7d9c5b6f4-00002, default/shop-7d9c5b6f4-00003,
    default/shop-7d9c5b6f4-00004, default/shop-7d9c5b6f4-00005,
    default/shop-7d9c5b6f4-00006, default/shop-7d9c5b6f4-00007 and 4 more
Node gpu-2 is drained (it leaves the cluster). This ends
  with cards: ml/train-resnet-0
Node gpu-5 is drained (its driver changes). What runs there is not known: the
API server does not answer.
Drained as well, with whatever comes there before: gpu-3, gpu-4
Pods with a controller begin anew on other nodes, or wait for room there. One
without does not come back.`
	sheet := &report.Sheet{As: report.Look{Width: 80}}
	fmt.Fprint(report.On(sheet), disrupted(nodes))
	if got := sheet.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whoever says yes, or --yes, agrees to all drains. Where nothing runs nobody is asked, and nobody has agreed.
func TestAgree(t *testing.T) {
	idle := []session.Disruption{{Node: "gpu-1"}}
	busy := append(slices.Clone(idle), session.Disruption{Node: "gpu-2", Pods: []string{"ml/train-0"}})
	for _, c := range []struct {
		nodes             []session.Disruption
		typed             string
		flags             []string
		asked, agreed, ok bool
	}{
		{idle, "", nil, false, false, true},
		{idle, "", []string{"--yes"}, false, true, true},
		{busy, "yes\n", nil, true, true, true},
		{busy, "no\n", nil, true, false, false},
		{busy, "", []string{"--yes"}, false, true, true},
	} {
		var said bytes.Buffer
		app := App("test", Group("", Up()))
		app.Reader, app.Writer = strings.NewReader(c.typed), &said
		var agreed bool
		var err error
		app.Commands[0].Action = func(ctx *cli.Context) error {
			agreed, err = (&terminal{kind: report.Plain}).agree(ctx, c.nodes)
			return nil
		}
		must(t, app.Run(append([]string{"kgpu", "up"}, c.flags...)))
		if asked := said.Len() > 0; asked != c.asked || agreed != c.agreed || (err == nil) != c.ok {
			t.Errorf("%+v: agreed %t, %v, said %q", c, agreed, err, said.String())
		}
	}
}

func TestApart(t *testing.T) {
	inv := &inventory.Inventory{Cluster: "lab", Hosts: make([]inventory.Host, 3)}
	for want, names := range map[string][]string{
		"This takes the cluster lab and all its 3 hosts apart: what runs in it ends, and what it keeps is lost.": nil,
		"This takes w1, w2 out of the cluster lab, ends what runs there, and undoes what kgpu changed there.":    {"w1", "w2"},
	} {
		if got := apart(inv, names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A program that reads events cannot be asked: the stream stays one, and nothing is changed.
func TestNoQuestionAmongEvents(t *testing.T) {
	file := inventoryOf(t, &answering{facts: strings.Replace(bareFacts, "ledger=0", "ledger=7", 1)})
	var out, errs bytes.Buffer
	app := App("test", Group("", Reset()))
	app.Writer, app.ErrWriter, app.Reader = &out, &errs, strings.NewReader("kgpu\n")
	if status := Run(t.Context(), app, []string{"kgpu", "reset", "--output", "json", "--inventory", file}); status != 3 {
		t.Errorf("exit status %d", status)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is no event", line)
		}
	}
	if !strings.Contains(out.String(), `"text":"nothing was changed"`) || !strings.Contains(errs.String(), "--yes agrees") {
		t.Errorf("told %s and %s", out.String(), errs.String())
	}
}

// An answer is a line, whole: its rest is for nobody else.
func TestAnswer(t *testing.T) {
	r := strings.NewReader("no thanks\nyes \nyes")
	for _, want := range []string{"no thanks", "yes", "yes"} {
		if got, err := answer(r); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := answer(r); err != io.EOF {
		t.Errorf("%v at the end", err)
	}
}

// TestConfirm: nothing but the word goes on, and without it, it is said whether something was done before.
func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		kind  report.Kind
		typed string
		asked bool
		ok    bool
		done  bool
	}{
		{report.Plain, "lab\n", true, true, false}, {report.Plain, "LAB\n", true, false, false}, {report.Plain, "yes\n", true, false, true}, {report.Plain, "", true, false, false},
		{report.JSON, "lab\n", false, false, false}, {report.JSON, "lab\n", false, false, true},
	} {
		var said bytes.Buffer
		app := App("test", Group("", Reset()))
		app.Reader, app.Writer = strings.NewReader(c.typed), &said
		var err error
		app.Commands[0].Action = func(ctx *cli.Context) error {
			at := &terminal{kind: c.kind}
			at.worked.Store(c.done)
			err = at.confirm(ctx, "This takes it apart.", "lab")
			return nil
		}
		must(t, app.Run([]string{"kgpu", "reset"}))
		if asked := strings.Contains(said.String(), "Type lab to go on: "); asked != c.asked || (err == nil) != c.ok {
			t.Errorf("%+v: %v, said %q", c, err, said.String())
		}
		if err != nil && (exitStatus(err) != 3 || strings.Contains(err.Error(), "nothing was changed") == c.done) {
			t.Errorf("%+v ends with %d: %v", c, exitStatus(err), err)
		}
	}
}
