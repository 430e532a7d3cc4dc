package plan

import (
	"regexp"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// pciAddress is what the kernel calls a function on the bus.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// leftOut are the addresses of the cards that a host's driver need not see.
func (b *builder) leftOut(f *facts.Host) []string {
	var out []string
	for _, c := range machine.ExcludedCards(b.Inventory, f) {
		if pciAddress.MatchString(c.Address) {
			out = append(out, c.Address)
		}
	}
	return out
}

// loadValues are those of the script that loads the driver.
func (b *builder) loadValues(h *host) map[string]string {
	values := map[string]string{"cards": strconv.Itoa(h.cards), "persistence": persistence}
	if left := b.leftOut(h.Facts); len(left) > 0 {
		values["left_out"] = lines(left...)
	}
	return values
}

// sayLeftOut warns of the cards of a host that Kubernetes does not get.
func (b *builder) sayLeftOut(h *host) {
	for _, c := range machine.ExcludedCards(b.Inventory, h.Facts) {
		b.warn("%s: %s", h.id, c)
	}
}
