// Package look tells the stories that only look at hosts: how they are and what is wrong with them, their certificates, what is at work on
// them, and what helps to find a fault. They change nothing.
package look

import (
	"context"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/status"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// statusBounds are what a host may take for one of the two scripts. Somebody waits for the table: a host that is slower has a
// row that says so.
var statusBounds = session.Bounds{Bytes: session.FactsBounds.Bytes, Time: 2 * time.Minute}

// Status looks at all hosts at the same time, changes nothing, and calls show with what they told: one connection to each and
// two commands. A host that cannot be asked is in the report, not an error. With every above zero it looks again and again,
// with that pause, over the same connections, until ctx ends, which then is no error.
func Status(ctx context.Context, o session.Options, every time.Duration, show func(*status.Report) error) error {
	s := session.New(o)
	defer s.Close()
	for shown := false; ; shown = true {
		report := observe(ctx, s)
		switch {
		case ctx.Err() == nil:
		case shown:
			return nil
		default:
			return &reason.Error{ID: reason.Cancelled, Err: context.Cause(ctx), Detail: "cancelled before the hosts had told how they are"}
		}
		if err := show(report); err != nil || every <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// observe asks every host how it is.
func observe(ctx context.Context, s *session.Session) *status.Report {
	hosts := s.Inventory.Hosts
	seen := make([]status.Observed, len(hosts))
	at := make(map[string]int, len(hosts))
	for i, h := range hosts {
		at[h.ID()] = i
	}
	_ = session.Each(hosts, func(h inventory.Host) error { // what fails is in what was seen
		seen[at[h.ID()]] = observeHost(ctx, s, h)
		return nil
	})
	return status.NewReport(s.Inventory, seen, status.PlanPending(s.Inventory, seen, plan.Up), time.Now())
}

// observeHost asks one. A connection over which something failed is not used again.
func observeHost(ctx context.Context, s *session.Session, h inventory.Host) status.Observed {
	seen := status.Observed{Machine: machine.Machine{Host: h}}
	if _, seen.Err = s.Connect(ctx, h); seen.Err != nil {
		return seen
	}
	output, err := s.AskOnce(ctx, h.ID(), session.Question{Name: "facts", Script: scripts.Facts(), Bounds: statusBounds})
	if err == nil {
		seen.Facts, err = facts.Parse(output)
	}
	if err == nil {
		output, err = s.AskOnce(ctx, h.ID(), session.Question{Name: "status", Script: scripts.Status(), Bounds: statusBounds})
	}
	if err == nil {
		seen.Status, err = facts.ParseStatus(output)
	}
	if err != nil {
		seen.Err = session.FactsError(h.ID(), err, output...)
		s.Disconnect(h.ID())
	}
	return seen
}
