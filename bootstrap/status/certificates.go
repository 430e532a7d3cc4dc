package status

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// RenewalDays is how many days before its expiry a certificate is a problem. kubelets renew their own long before.
const RenewalDays = 30

// certificateNames are the owners of certificates, by their files below /etc/kubernetes.
var certificateNames = map[string]string{
	"pki/ca.crt": "CA", "pki/apiserver.crt": "API server", "pki/apiserver-kubelet-client.crt": "API server to kubelets",
	"pki/apiserver-etcd-client.crt": "API server to etcd", "pki/front-proxy-ca.crt": "front proxy CA", "pki/front-proxy-client.crt": "front proxy",
	"pki/etcd/ca.crt": "etcd CA", "pki/etcd/server.crt": "etcd", "pki/etcd/peer.crt": "etcd peer", "pki/etcd/healthcheck-client.crt": "etcd health check",
	"admin.conf": "admin", "super-admin.conf": "super admin", "controller-manager.conf": "controller manager", "scheduler.conf": "scheduler", "kubelet.conf": "kubelet",
}

// certificateName is the owner of a certificate, by its file.
func certificateName(file string) string {
	if below, ok := strings.CutPrefix(file, "/etc/kubernetes/"); ok {
		return cmp.Or(certificateNames[below], below)
	}
	if strings.HasPrefix(path.Base(file), "kubelet-client") {
		return "kubelet"
	}
	return file
}

// certificates reports when a host's certificates expire, as a single problem, because kubeadm makes them all at the
// same time.
func (j *reporter) certificates(h *Host, s *Observed) {
	if s.Status == nil {
		return
	}
	for _, c := range s.Status.Certificates {
		out := Certificate{Name: oneLine(certificateName(c.Path)), Path: oneLine(c.Path)}
		if !c.Ends.IsZero() {
			ends := c.Ends.UTC()
			out.Ends, out.Days = &ends, int(math.Floor(c.Ends.Sub(j.now).Hours()/24))
		}
		h.Certificates = append(h.Certificates, out)
	}
	slices.SortStableFunc(h.Certificates, func(a, b Certificate) int { return expirySortKey(a).Compare(expirySortKey(b)) })
	var soon []string
	for _, c := range h.Certificates {
		switch {
		case c.Ends == nil:
			soon = append(soon, c.Name+" ("+c.Path+") cannot be read")
		case c.Days < 0:
			soon = append(soon, c.Name+" has ended on "+c.Ends.Format(time.DateOnly))
		case c.Days < RenewalDays:
			soon = append(soon, fmt.Sprintf("%s ends in %s, on %s", c.Name, plural.Of(c.Days, "day"), c.Ends.Format(time.DateOnly)))
		}
	}
	if len(soon) > 0 {
		j.problem(h.Host, reason.HostCertificateEnds, "certificates: "+strings.Join(soon, "; "), "")
	}
}

// expirySortKey is the sort key of certificates: unreadable ones come first.
func expirySortKey(c Certificate) time.Time {
	if c.Ends == nil {
		return time.Time{}
	}
	return *c.Ends
}
