package look

import (
	"context"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/status"
	"kgpu.dev/kgpu/inventory"
)

// Certificates looks at the certificates of Kubernetes on all hosts, at the same time, and changes nothing. A host that cannot be
// asked is in the answer, not an error.
func Certificates(ctx context.Context, o session.Options) (*report.Certificates, error) {
	s := session.New(o)
	defer s.Close()
	hosts := o.Inventory.Hosts
	out := &report.Certificates{Schema: report.CertificatesSchema, Cluster: o.Inventory.Cluster, Hosts: make([]report.CertifiedHost, len(hosts))}
	at := make(map[string]int, len(hosts))
	for i, h := range hosts {
		at[h.ID()] = i
	}
	_ = session.Each(hosts, func(h inventory.Host) error { // what fails is in the answer
		out.Hosts[at[h.ID()]] = certificatesOf(ctx, s, h)
		return nil
	})
	if ctx.Err() != nil {
		return nil, &reason.Error{ID: reason.Cancelled, Err: context.Cause(ctx), Detail: "cancelled before the hosts had told of their certificates"}
	}
	out.Time = time.Now()
	if v := machine.SetOf(o.Inventory, s.Facts).Versions.Running; !v.IsZero() && v.Minor < plan.RenewsSince {
		renewedByHand(out)
	}
	return out, nil
}

// renewedByHand says that kgpu renews no certificate of the cluster.
func renewedByHand(out *report.Certificates) {
	for _, h := range out.Hosts {
		for i := range h.Certificates {
			if c := &h.Certificates[i]; c.Renews == string(machine.ByKgpu) {
				c.Renews = string(machine.ByNobody)
			}
		}
	}
}

// certificatesOf asks one host.
func certificatesOf(ctx context.Context, s *session.Session, h inventory.Host) report.CertifiedHost {
	out := report.CertifiedHost{Host: h.ID(), Role: string(h.Role), Certificates: []report.HostCertificate{}}
	if err := s.ConnectAndGather(ctx, h); err != nil {
		out.Error = strings.TrimPrefix(err.Error(), h.ID()+": ")
		if all := reason.All(err); len(all) > 0 {
			out.Advice = all[0].AdviceLine()
		}
		return out
	}
	out.Reached = true
	f, _ := s.FactsOf(h.ID())
	for _, c := range machine.Certificates(f, f.Now) {
		row := report.HostCertificate{
			Certificate: status.NewCertificate(c), IssuedBy: c.Issuer, Names: append([]string{}, c.Names...), Renews: string(c.Renewer),
			Due: c.Due(machine.WarnBefore), Ended: c.Ended(),
		}
		out.Certificates = append(out.Certificates, row)
	}
	return out
}
