package look

import (
	"context"
	"errors"
	"os"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/records"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// CheckUpgrade looks at the control planes, and changes nothing. version is the one that the cluster is to get; empty: the inventory's.
func CheckUpgrade(ctx context.Context, o session.Options, version string) (*report.UpgradeCheck, error) {
	if version != "" {
		data, err := os.ReadFile(o.Inventory.Path)
		if err != nil {
			return nil, err
		}
		edited, err := inventory.SetVersion(data, version)
		if err != nil {
			return nil, err
		}
		if o.Inventory, err = inventory.DecodeEdited(o.Inventory.Path, data, edited); err != nil {
			return nil, err
		}
	}
	s, err := session.Open(ctx, o, o.Inventory.ControlPlanes())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	set := machine.SetOf(s.Inventory, s.Facts)
	if !set.ClusterExists() {
		return nil, &reason.Error{ID: reason.ClusterMissing, Host: s.AdminPlane().ID(), Doing: "looking for what an upgrade would break"}
	}
	check := &report.UpgradeCheck{Running: set.Versions.Running, Took: records.UpgradeTimes(o.Inventory)}
	for _, v := range set.Upgrade() {
		if v != check.Running {
			check.Rounds = append(check.Rounds, v)
		}
	}
	return check, askAll(ctx, s, check)
}

// askAll asks all API servers what they were asked for, and adds it to the check: each counts for itself. One that does not tell is
// named, and it is an error if none does.
func askAll(ctx context.Context, s *session.Session, check *report.UpgradeCheck) error {
	var told [][]facts.Deprecated
	var errs []error
	for _, h := range s.Inventory.ControlPlanes() {
		id := h.ID()
		f, _ := s.FactsOf(id)
		if f == nil { // the user was told why
			check.Silent = append(check.Silent, id)
			continue
		}
		if f.ControlPlane == nil { // it has no API server yet
			continue
		}
		found, err := deprecated(ctx, s, id)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			check.Silent, errs = append(check.Silent, id), append(errs, err)
			continue
		}
		check.Asked, told = append(check.Asked, id), append(told, found)
	}
	if len(told) == 0 {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		s.Tell(event.Event{Kind: event.Warning, Text: err.Error()})
	}
	check.Deprecated = facts.MergeDeprecated(told...)
	return nil
}

// deprecated asks the API server of one control plane.
func deprecated(ctx context.Context, s *session.Session, plane string) ([]facts.Deprecated, error) {
	answer, err := s.Ask(ctx, plane, session.Question{Name: "deprecated", Script: scripts.Deprecated(), Bounds: session.FactsBounds})
	var found []facts.Deprecated
	if err == nil {
		found, err = facts.ParseDeprecated(answer)
	}
	if err != nil {
		return nil, session.FactsError(plane, err, answer...)
	}
	return found, nil
}
