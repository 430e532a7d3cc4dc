package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// What a host may take to tell what is wrong with it. The script's own limits add up to less than that on a host where
// everything hangs.
var doctorBounds = session.Bounds{Bytes: 8 << 20, Time: 3 * time.Minute}

const (
	doctorTogether = 64              // hosts that are asked at the same time
	doctorPatience = 4 * time.Minute // for one host, with all that is tried to reach it
)

// examination is the story with the hosts that were looked at, and what was seen.
type examination struct {
	*story
	machines []doctor.Machine
	named    []string // IDs of the hosts that findings are wanted of
}

// Doctor looks what is wrong with the named hosts (none: all), and changes nothing. A host that cannot be reached is a
// finding. A control plane is asked in any case: it knows what the cluster thinks of its nodes.
func Doctor(ctx context.Context, o Options, names []string) (*report.Diagnosis, error) {
	p, err := examine(ctx, o, names)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.diagnosis(), nil
}

// examine asks the hosts. Who calls closes the session.
func examine(ctx context.Context, o Options, names []string) (*examination, error) {
	ids, hosts, err := o.Narrow(names)
	if err != nil {
		return nil, err
	}
	p := &examination{story: newStory(o), machines: make([]doctor.Machine, len(hosts)), named: ids}
	var group errgroup.Group
	group.SetLimit(doctorTogether)
	for i, h := range hosts {
		group.Go(func() error {
			p.machines[i] = p.look(ctx, h)
			return nil
		})
	}
	_ = group.Wait() // what fails is a finding
	if ctx.Err() != nil {
		p.Close()
		return nil, &reason.Error{ID: reason.Cancelled, Err: context.Cause(ctx), Detail: "cancelled", Advice: "run the same command again"}
	}
	if err := p.miswritten(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// miswritten is what is wrong with the files that say how hosts are reached: nothing of it is wrong with a host.
func (p *examination) miswritten() error {
	var errs []error
	for _, m := range p.machines {
		if errors.Is(m.Err, &reason.Error{ID: reason.InventoryInvalid}) {
			errs = append(errs, m.Err)
		}
	}
	return errors.Join(errs...)
}

// look asks one host, over one connection: its facts, and at the same time what may be wrong with it. A driver that hangs
// may hold up the one, and the other tells of it.
func (p *examination) look(ctx context.Context, h inventory.Host) doctor.Machine {
	m := doctor.Machine{Machine: machine.Machine{Host: h}}
	if _, err := p.Connect(ctx, h); err != nil {
		m.Err = err
		return m
	}
	ctx, cancel := context.WithTimeoutCause(ctx, doctorPatience, fmt.Errorf("the host took more than %s", doctorPatience))
	defer cancel()
	var group errgroup.Group
	var looking, telling error
	group.Go(func() error {
		looking = p.GatherFacts(ctx, h.ID())
		return nil
	})
	group.Go(func() error {
		m.Evidence, telling = evidenceOf(ctx, p.Session, h.ID())
		return nil
	})
	_ = group.Wait() // both errors are looked at
	m.Facts, m.Skew = p.FactsOf(h.ID())
	if m.Err = errors.Join(looking, telling); m.Err != nil && looking != nil {
		m.Facts = nil
	}
	return m
}

func evidenceOf(ctx context.Context, s *session.Session, id string) (*doctor.Evidence, error) {
	out, err := s.AskOnce(ctx, id, session.Question{Name: "doctor", Script: scripts.Doctor(), Bounds: doctorBounds})
	if err != nil {
		return nil, session.FactsError(id, err)
	}
	seen, err := doctor.ParseEvidence(out)
	if err != nil {
		return nil, session.FactsError(id, err, out...)
	}
	return seen, nil
}

// diagnosis judges what was seen. While kgpu is at work, only hosts that cannot be reached are told of: what else is not as it
// should be may be what it is just changing.
func (p *examination) diagnosis() *report.Diagnosis {
	found := doctor.Check(p.settled(), p.machines, slices.Concat(p.Inventory.Ignore, p.want.Ignore))
	found = append(found, p.drift(found)...)
	d := &report.Diagnosis{Cluster: p.Inventory.Cluster, Time: time.Now(), AtWork: p.DescribeWork()}
	for _, m := range p.machines {
		if len(p.named) > 0 && !slices.Contains(p.named, m.ID()) {
			continue
		}
		h := report.Examined{Host: m.ID(), Role: string(m.Role), Reached: m.Facts != nil || m.Evidence != nil}
		if m.Facts != nil {
			h.Cards = len(machine.Cards(p.Inventory, m.Facts))
		}
		for _, f := range found {
			if f.Host == m.ID() && (d.AtWork == "" || !h.Reached) {
				h.Findings = append(h.Findings, f)
			}
		}
		doctor.SortWorst(h.Findings)
		d.Hosts = append(d.Hosts, h)
	}
	return d
}

// drift is what `kgpu up` would do, on hosts without trouble. What is wrong with one host may be why something is planned on
// another, and half of the hosts are not what the inventory has: it is told where all have told and none has an error. That a
// key which ends soon is fetched again is no drift, nor that certificates are renewed which end soon.
func (p *examination) drift(found []doctor.Finding) []doctor.Finding {
	failures, _ := doctor.Count(found)
	silent := slices.ContainsFunc(p.machines, func(m doctor.Machine) bool { return m.Facts == nil })
	if failures > 0 || silent || len(p.named) > 0 || p.DescribeHolder() != "" {
		return nil
	}
	g, err := p.plan()
	if err != nil {
		return doctor.Refused(err) // hosts in another cluster and the like, preflight tells
	}
	steps := map[string][]string{}
	for _, s := range g.Steps {
		told := func(id string) bool {
			return slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Host == s.Host && f.ID == id })
		}
		if strings.HasPrefix(s.ID, "repo/") && told(doctor.KeyEnds) || s.ID == "certs/renew" && told(string(reason.HostCertificateEnds)) {
			continue
		}
		steps[s.Host] = append(steps[s.Host], s.ID+": "+s.Reason)
	}
	var out []doctor.Finding
	for _, m := range p.machines {
		if len(steps[m.ID()]) == 0 {
			continue
		}
		if f := doctor.Drift(m.Host, steps[m.ID()]); !slices.Contains(p.want.Ignore, f.ID) {
			out = append(out, f)
		}
	}
	return out
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
	p, err := examine(ctx, o, names)
	if err != nil {
		return false, err
	}
	defer p.Close()
	for _, m := range p.machines {
		if m.Facts == nil { // nor would it tell when it is asked again
			p.Disconnect(m.ID())
		}
	}
	gentle, reboots := map[string]*plan.Mend{}, map[string]*plan.Mend{}
	for _, h := range p.diagnosis().Hosts {
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
		if err := p.repair(ctx, round.mends, round.reboot, agree); err != nil {
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

// repair carries out what is agreed to. The question may have waited for hours: what the hosts are by then decides.
func (p *examination) repair(ctx context.Context, mends map[string]*plan.Mend, reboot bool, agree func(Mended) (bool, error)) error {
	var list []plan.Mend
	for _, m := range p.machines {
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
func (p *examination) remedy(list []plan.Mend) (*graph.Graph, error) {
	g, err := plan.Repair(p.Inventory, p.Facts, list)
	if err != nil {
		return nil, err
	}
	g.LimitUnavailable(max(p.want.MaxUnavailable, 1))
	return g, nil
}

// told is what the graph does, in lines.
func (p *examination) told(ctx context.Context, g *graph.Graph) string {
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
