package look

import (
	"context"
	"os"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/records"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// CheckUpgrade looks at the control plane, and changes nothing. version is the one that the cluster is to get; empty: the inventory's.
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
	plane := s.AdminPlane().ID()
	answer, err := s.Ask(ctx, plane, session.Question{Name: "deprecated", Script: scripts.Deprecated(), Bounds: session.FactsBounds})
	if err == nil {
		check.Deprecated, err = facts.ParseDeprecated(answer)
	}
	if err != nil {
		return nil, session.FactsError(plane, err, answer...)
	}
	return check, nil
}
