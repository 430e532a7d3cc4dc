package preflight

import (
	"errors"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// cards refuses hosts whose cards no driver can serve, before anything is installed.
func (c *checker) cards(m Machine) {
	if len(plan.Cards(m.Facts)) == 0 {
		return
	}
	var refused *plan.Refused
	if _, err := plan.ChooseDriver(c.inv, m.Facts); errors.As(err, &refused) {
		c.problem(m.ID(), refusals[refused.Kind], "%s", refused.Detail)
	}
}

var refusals = map[plan.Refusal]reason.ID{
	plan.NoSuchDriver:  reason.GPUUnsupported,
	plan.Impossible:    reason.GPUDriverImpossible,
	plan.Unsigned:      reason.GPUSecureBootUnsigned,
	plan.DriverMissing: reason.GPUDriverMissing,
	plan.DriverForeign: reason.GPUDriverForeign,
}
