package status

import (
	"fmt"
	"math"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// RenewalDays is how many days before its expiry a certificate is a problem. kubelets renew their own long before.
const RenewalDays = int(machine.RenewBefore / (24 * time.Hour))

// certificates reports when a host's certificates expire, as a single problem, because kubeadm makes them all at the
// same time.
func (j *reporter) certificates(h *Host, s *Observed) {
	if s.Facts == nil {
		return
	}
	var soon []string
	for _, c := range machine.Certificates(s.Facts, j.now) {
		out := NewCertificate(c)
		h.Certificates = append(h.Certificates, out)
		switch {
		case out.Ends == nil:
			soon = append(soon, out.Name+" ("+out.Path+") cannot be read")
		case c.Ended():
			soon = append(soon, out.Name+" has ended on "+out.Ends.Format(time.DateOnly))
		case c.Due(machine.RenewBefore):
			soon = append(soon, fmt.Sprintf("%s ends in %s, on %s", out.Name, plural.Of(out.Days, "day"), out.Ends.Format(time.DateOnly)))
		}
	}
	if len(soon) > 0 {
		j.problem(h.Host, reason.HostCertificateEnds, "certificates: "+strings.Join(soon, "; "), "")
	}
}

// NewCertificate is a certificate as reports have it.
func NewCertificate(c machine.Certificate) Certificate {
	out := Certificate{Name: oneLine(c.Name), Path: oneLine(c.Path)}
	if !c.Ends.IsZero() {
		ends := c.Ends.UTC()
		out.Ends, out.Days = &ends, int(math.Floor(c.Left.Hours()/24))
	}
	return out
}
