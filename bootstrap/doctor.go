package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/scripts"
)

// repair is hosts that were examined, and what is wanted.
type repair struct {
	*look.Examination
	want Options
}

// Mended is what a repair is about to do, for the one who agrees.
type Mended struct {
	Text   string // what is done, a line each
	Reboot bool   // nodes are drained and hosts reboot
}

// Fix repairs what can be repaired safely of what is wrong with the named hosts, each kind after agree has said yes: first
// what disrupts nothing, then reboots. It returns whether `kgpu up` is what is left to do, and changes nothing if nothing
// was agreed to.
func Fix(ctx context.Context, o Options, names []string, agree func(Mended) (bool, error)) (up bool, err error) {
	seen, err := look.Examine(ctx, o.Options, names, o.Ignore)
	if err != nil {
		return false, err
	}
	defer seen.Close()
	p := &repair{seen, o}
	for _, m := range p.Machines {
		if m.Facts == nil { // nor would it tell when it is asked again
			p.Disconnect(m.ID())
		}
	}
	gentle, reboots := map[string]*plan.Mend{}, map[string]*plan.Mend{}
	for _, h := range p.Diagnosis().Hosts {
		for _, f := range h.Findings {
			up = up || f.Repair == doctor.Converge
			if f.Repair == doctor.Reboot {
				reboots[h.Host] = mend(reboots[h.Host], f)
			} else if f.Repair != doctor.ByHand && f.Repair != doctor.Converge {
				gentle[h.Host] = mend(gentle[h.Host], f)
			}
		}
	}
	for id := range reboots { // after it everything starts anew
		if m := gentle[id]; m != nil {
			*m = plan.Mend{Host: m.Host, Why: m.Why, Packages: m.Packages}
		}
	}
	for _, round := range []struct {
		mends  map[string]*plan.Mend
		reboot bool
	}{{gentle, false}, {reboots, true}} {
		if err := p.carryOut(ctx, round.mends, round.reboot, agree); err != nil {
			return up, err
		}
	}
	return up, nil
}

// mend adds a finding's repair.
func mend(m *plan.Mend, f doctor.Finding) *plan.Mend {
	if m == nil {
		m = &plan.Mend{Host: f.Host}
	}
	if !strings.Contains(m.Why, f.ID) {
		m.Why = strings.TrimPrefix(m.Why+", "+f.ID, ", ")
	}
	for _, u := range f.Units {
		if f.Repair == doctor.RestartUnit && !slices.Contains(m.Units, u) {
			m.Units = append(m.Units, u)
		}
	}
	m.Packages = append(m.Packages, f.Packages...)
	m.Module = m.Module || f.Repair == doctor.LoadModule
	m.Plugin = m.Plugin || f.Repair == doctor.RestartPlugin
	m.Reboot = m.Reboot || f.Repair == doctor.Reboot
	m.Force = m.Force || f.Force
	return m
}

// errDeclined ends a repair that nobody wants.
var errDeclined = errors.New("declined")

// carryOut does what is agreed to. The question may have waited for hours: what the hosts are by then decides.
func (p *repair) carryOut(ctx context.Context, mends map[string]*plan.Mend, reboot bool, agree func(Mended) (bool, error)) error {
	var list []plan.Mend
	for _, m := range p.Machines {
		if w := mends[m.ID()]; w != nil && m.Facts != nil {
			w.Seen = m.Facts
			list = append(list, *w)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if busy := p.LockedError(); busy != nil {
		return busy
	}
	ask := func(ctx context.Context, g *graph.Graph) error {
		if g.Empty() {
			return nil
		}
		yes, err := agree(Mended{Text: p.told(ctx, g), Reboot: reboot})
		if err == nil && !yes {
			err = errDeclined
		}
		return err
	}
	err := session.Change{
		Leftover: (*session.Session).Attach,
		Plan:     func() (*graph.Graph, error) { return p.remedy(list) },
		Ask:      ask,
		Do: func(ctx context.Context, g *graph.Graph) error {
			nodes, _ := g.DrainedNodes()
			g.AllowGPUEviction(nodes)
			_, err := p.Execute(ctx, g)
			return err
		},
	}.Run(ctx, p.Session)
	if errors.Is(err, errDeclined) {
		return nil
	}
	return err
}

// remedy plans mends for the hosts as they are by their facts.
func (p *repair) remedy(list []plan.Mend) (*graph.Graph, error) {
	g, err := plan.Repair(p.Inventory, p.Facts, list)
	if err != nil {
		return nil, err
	}
	g.LimitUnavailable(max(p.want.MaxUnavailable, 1))
	return g, nil
}

// told is what the graph does, in lines.
func (p *repair) told(ctx context.Context, g *graph.Graph) string {
	var what strings.Builder
	for _, s := range g.Steps {
		fmt.Fprintf(&what, "%s: %s (%s)\n", s.Host, s.Title, s.Reason)
	}
	disrupted, err := p.Disruptions(ctx, g)
	if err != nil {
		disrupted = nil // an API server that does not answer has no pods to tell of; a drain waits for it, and fails
	}
	for _, d := range disrupted {
		if len(d.Pods) > 0 {
			fmt.Fprintf(&what, "pods of %s move to other nodes, or wait: %s\n", d.Node, strings.Join(d.Pods, ", "))
		}
	}
	return strings.TrimSuffix(what.String(), "\n")
}

// InstallWatch puts the check of cards on the named hosts (none: all) that are nodes with cards: a timer that tells the
// cluster by the condition GPUHealthy when a card is lost or hangs. show is called before anything changes.
func InstallWatch(ctx context.Context, o Options, names []string, show func(*graph.Graph) error) error {
	ids, hosts, err := o.Narrow(names)
	if err != nil {
		return err
	}
	s, err := session.OpenToChange(ctx, o.Options, hosts, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	return session.Change{
		Plan: func() (*graph.Graph, error) { return plan.Watch(s.Inventory, s.Facts, ids, scripts.Watch()) },
		Ask:  func(_ context.Context, g *graph.Graph) error { return show(g) },
		Do: func(ctx context.Context, g *graph.Graph) error {
			_, err := s.Execute(ctx, g)
			return err
		},
	}.Run(ctx, s)
}
