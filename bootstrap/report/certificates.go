package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/status"
)

// CertificatesSchema is the version of Certificates as JSON. It increases when a field is removed or changes its meaning.
const CertificatesSchema = 1

// Certificates are those of Kubernetes on the hosts of a cluster. bootstrap/report/schema/certs.schema.json describes it as JSON.
type Certificates struct {
	Schema  int             `json:"schema"`
	Cluster string          `json:"cluster"`
	Time    time.Time       `json:"time"`
	Hosts   []CertifiedHost `json:"hosts"` // in the inventory's order
}

// CertifiedHost is a host with its certificates, the one that ends first before the others.
type CertifiedHost struct {
	Host         string            `json:"host"`
	Role         string            `json:"role"`
	Reached      bool              `json:"reached"`
	Error        string            `json:"error,omitempty"` // why it is not reached
	Advice       string            `json:"-"`               // what to do about that
	Certificates []HostCertificate `json:"certificates"`
}

// HostCertificate is a certificate, and what becomes of it.
type HostCertificate struct {
	status.Certificate
	IssuedBy string   `json:"issuedBy"`
	Names    []string `json:"names"`  // DNS names and addresses that it is for
	Renews   string   `json:"renews"` // who does: kgpu, kubelet, nobody, unneeded
	Due      bool     `json:"due"`    // somebody has to see to it now
	Ended    bool     `json:"ended"`
}

// Well reports whether all hosts were reached, and nobody has to see to a certificate.
func (c *Certificates) Well() bool {
	return !slices.ContainsFunc(c.Hosts, func(h CertifiedHost) bool {
		return !h.Reached || slices.ContainsFunc(h.Certificates, HostCertificate.wants)
	})
}

// wants reports whether somebody has to see to the certificate.
func (c HostCertificate) wants() bool { return c.Due || c.Ends == nil }

// renewers are those who renew a certificate, in words.
var renewers = map[machine.Renewer]string{
	machine.ByKgpu: "kgpu certs renew", machine.ByKubelet: "the kubelet", machine.ByNobody: "nobody", machine.Unchecked: "not needed",
}

// CertificatesJSON writes the certificates as one JSON object.
func CertificatesJSON(w io.Writer, c *Certificates) error { return writeJSON(w, c) }

// PrintCertificates writes a line for each certificate, and what to do about those that end soon. renew and up are the commands.
func PrintCertificates(w io.Writer, c *Certificates, renew, up string) error {
	p := On(w)
	g := grid{rows: [][]string{{"HOST", "CERTIFICATE", "ENDS", "DAYS", "ISSUED BY", "RENEWED BY", "NAMES"}}, leave: []int{0, 0, 0, 0, 2, 3, 1}}
	colours := []string{bold}
	for _, h := range c.Hosts {
		for _, row := range h.Certificates {
			g.rows = append(g.rows, row.cells(h.Host))
			colours = append(colours, row.colour())
		}
	}
	g.colour = func(row int) string { return colours[row] }
	if len(g.rows) > 1 {
		p.grid(g)
		p.say(plain, "", "")
	}
	var away []CertifiedHost
	for _, h := range c.Hosts {
		switch {
		case !h.Reached:
			away = append(away, h)
		case len(h.Certificates) == 0:
			p.say(plain, h.Host+": ", "there are no certificates of Kubernetes")
		}
	}
	for i, h := range away {
		p.say(red, h.Host+": ", h.Error)
		if h.Advice != "" && (i == len(away)-1 || away[i+1].Advice != h.Advice) {
			p.say(bold, "    →", " "+h.Advice)
		}
	}
	c.advice(p, renew, up)
	return p.to.err
}

func (c HostCertificate) cells(host string) []string {
	ends, left := "cannot be read", "-"
	if c.Ends != nil {
		ends, left = c.Ends.Format(time.DateOnly), fmt.Sprint(c.Days)
	}
	return []string{host, c.Name, ends, left, c.IssuedBy, renewers[machine.Renewer(c.Renews)], strings.Join(c.Names, " ")}
}

func (c HostCertificate) colour() string {
	switch {
	case c.Ended:
		return red
	case c.wants():
		return yellow
	}
	return plain
}

// advice says what to do about certificates that end soon, or have ended.
func (c *Certificates) advice(p *Page, renew, up string) {
	due := map[machine.Renewer]bool{}
	for _, h := range c.Hosts {
		for _, row := range h.Certificates {
			due[machine.Renewer(row.Renews)] = due[machine.Renewer(row.Renews)] || row.wants()
		}
	}
	if due[machine.ByKgpu] {
		p.say(plain, "", "Certificates of the control plane end in less than 60 days, or have ended: `"+renew+"` renews them; in the last 30 days `"+up+"` does so, too.")
	}
	if due[machine.ByKubelet] {
		p.say(plain, "", "A kubelet has not renewed its certificate in time: `journalctl -u kubelet` there says why. When it has ended, `"+up+"` takes its node back in.")
	}
	if due[machine.ByNobody] {
		p.say(plain, "", "Nobody renews a certificate authority, the certificate of a kubelet that does not rotate, nor, before Kubernetes 1.30, those of the control plane: docs/operations.md, \"Certificates\".")
	}
	if c.Well() {
		p.say(plain, "", "No certificate ends in the next 60 days without somebody who renews it.")
	}
}
