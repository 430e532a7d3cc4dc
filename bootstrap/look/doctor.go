package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kgpu.dev/kgpu/bootstrap/doctor"
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

// Examination is the hosts that were looked at, and what was seen.
type Examination struct {
	*session.Session
	Machines []doctor.Machine

	named  []string // IDs of the hosts that findings are wanted of; none: all
	ignore []string // IDs of findings that nobody wants
}

// Doctor looks what is wrong with the named hosts (none: all), and changes nothing. A host that cannot be reached is a
// finding. A control plane is asked in any case: it knows what the cluster thinks of its nodes. Findings whose IDs are to be ignored, by
// the inventory or here, are not told.
func Doctor(ctx context.Context, o session.Options, names, ignore []string) (*report.Diagnosis, error) {
	e, err := Examine(ctx, o, names, ignore)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Diagnosis(), nil
}

// Examine asks the hosts. Who calls closes the session.
func Examine(ctx context.Context, o session.Options, names, ignore []string) (*Examination, error) {
	ids, hosts, err := o.Narrow(names)
	if err != nil {
		return nil, err
	}
	e := &Examination{Session: session.New(o), Machines: make([]doctor.Machine, len(hosts)), named: ids, ignore: slices.Concat(o.Inventory.Ignore, ignore)}
	var group errgroup.Group
	group.SetLimit(doctorTogether)
	for i, h := range hosts {
		group.Go(func() error {
			e.Machines[i] = e.look(ctx, h)
			return nil
		})
	}
	_ = group.Wait() // what fails is a finding
	if ctx.Err() != nil {
		e.Close()
		return nil, &reason.Error{ID: reason.Cancelled, Err: context.Cause(ctx), Detail: "cancelled", Advice: "run the same command again"}
	}
	if err := e.miswritten(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// miswritten is what is wrong with the files that say how hosts are reached: nothing of it is wrong with a host.
func (e *Examination) miswritten() error {
	var errs []error
	for _, m := range e.Machines {
		if errors.Is(m.Err, &reason.Error{ID: reason.InventoryInvalid}) {
			errs = append(errs, m.Err)
		}
	}
	return errors.Join(errs...)
}

// look asks one host, over one connection: its facts, and at the same time what may be wrong with it. A driver that hangs
// may hold up the one, and the other tells of it.
func (e *Examination) look(ctx context.Context, h inventory.Host) doctor.Machine {
	m := doctor.Machine{Machine: machine.Machine{Host: h}}
	if _, err := e.Connect(ctx, h); err != nil {
		m.Err = err
		return m
	}
	ctx, cancel := context.WithTimeoutCause(ctx, doctorPatience, fmt.Errorf("the host took more than %s", doctorPatience))
	defer cancel()
	var group errgroup.Group
	var looking, telling error
	group.Go(func() error {
		looking = e.GatherFacts(ctx, h.ID())
		return nil
	})
	group.Go(func() error {
		m.Evidence, telling = evidenceOf(ctx, e.Session, h.ID())
		return nil
	})
	_ = group.Wait() // both errors are looked at
	m.Facts, m.Skew = e.FactsOf(h.ID())
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

// Diagnosis judges what was seen. While kgpu is at work, only hosts that cannot be reached are told of: what else is not as it
// should be may be what it is just changing.
func (e *Examination) Diagnosis() *report.Diagnosis {
	found := doctor.Check(machine.SetOf(e.Inventory, e.Facts).Inventory, e.Machines, e.ignore)
	found = append(found, e.drift(found)...)
	d := &report.Diagnosis{Cluster: e.Inventory.Cluster, Time: time.Now(), AtWork: e.DescribeWork()}
	for _, m := range e.Machines {
		if len(e.named) > 0 && !slices.Contains(e.named, m.ID()) {
			continue
		}
		h := report.Examined{Host: m.ID(), Role: string(m.Role), Reached: m.Facts != nil || m.Evidence != nil}
		if m.Facts != nil {
			h.Cards = len(machine.Cards(e.Inventory, m.Facts))
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
func (e *Examination) drift(found []doctor.Finding) []doctor.Finding {
	failures, _ := doctor.Count(found)
	silent := slices.ContainsFunc(e.Machines, func(m doctor.Machine) bool { return m.Facts == nil })
	if failures > 0 || silent || len(e.named) > 0 || e.DescribeHolder() != "" {
		return nil
	}
	g, err := plan.Up(e.Inventory, e.Facts)
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
	for _, m := range e.Machines {
		if len(steps[m.ID()]) == 0 {
			continue
		}
		if f := doctor.Drift(m.Host, steps[m.ID()]); !slices.Contains(e.ignore, f.ID) {
			out = append(out, f)
		}
	}
	return out
}
