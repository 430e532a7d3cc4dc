package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/printable"
)

// Diagnosis is what kgpu doctor found.
type Diagnosis struct {
	Cluster string
	Time    time.Time
	Hosts   []Examined
}

// Examined is a host that was looked at.
type Examined struct {
	Host, Role string
	Reached    bool // it told at least something
	Cards      int
	Findings   []doctor.Finding // the worst first
}

// Findings are those of all hosts.
func (d *Diagnosis) Findings() []doctor.Finding {
	var out []doctor.Finding
	for _, h := range d.Hosts {
		out = append(out, h.Findings...)
	}
	return out
}

// PrintDiagnosis writes what was found: the hosts with the worst findings first, the healthy ones on one line, and a summary.
func PrintDiagnosis(w io.Writer, d *Diagnosis) error {
	p := &printer{w: printable.Writer(w)}
	hosts := slices.Clone(d.Hosts)
	slices.SortStableFunc(hosts, func(a, b Examined) int {
		x, xx := doctor.Count(a.Findings)
		y, yy := doctor.Count(b.Findings)
		if x != y {
			return y - x
		}
		return yy - xx
	})
	var healthy []string
	sick := 0
	for _, h := range hosts {
		if len(h.Findings) == 0 {
			healthy = append(healthy, h.Host)
			continue
		}
		sick++
		p.printf("%s\n", h.Host)
		for _, f := range h.Findings {
			p.printf("  %s %s\n", f.Severity, f.ID)
			for _, line := range f.Evidence {
				p.printf("    > %s\n", line)
			}
			p.printf("    %s\n    fix: %s\n", f.Cause, f.Fix)
		}
		p.printf("\n")
	}
	if len(healthy) > 0 {
		p.printf("healthy: ")
		for i, name := range healthy {
			if i > 0 {
				p.printf(", ")
			}
			p.printf("%s", name)
		}
		p.printf("\n")
	}
	failures, warnings := doctor.Count(d.Findings())
	p.printf("%d of %s with findings: %s, %s\n", sick, plural.Of(len(hosts), "host"), plural.Of(failures, "error"), plural.Of(warnings, "warning"))
	return p.err
}

// printer keeps the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// DiagnosisSchema is the version of what DiagnosisJSON writes: it grows when a field changes its meaning or goes.
const DiagnosisSchema = 1

// What doctor.schema.json describes.
type (
	diagnosisJSON struct {
		Schema   int            `json:"schema"`
		Cluster  string         `json:"cluster"`
		Time     time.Time      `json:"time"`
		Errors   int            `json:"errors"`
		Warnings int            `json:"warnings"`
		Hosts    []examinedJSON `json:"hosts"`
	}
	examinedJSON struct {
		Host     string        `json:"host"`
		Role     string        `json:"role"`
		Reached  bool          `json:"reached"`
		Cards    int           `json:"cards"`
		Findings []findingJSON `json:"findings"`
	}
	findingJSON struct {
		ID       string          `json:"id"`
		Severity doctor.Severity `json:"severity"`
		Evidence []string        `json:"evidence"`
		Cause    string          `json:"cause"`
		Fix      string          `json:"fix"`
		Repair   doctor.Repair   `json:"repair"`
	}
)

// DiagnosisJSON writes what was found as one object, which bootstrap/schema describes.
func DiagnosisJSON(w io.Writer, d *Diagnosis) error {
	out := diagnosisJSON{Schema: DiagnosisSchema, Cluster: d.Cluster, Time: d.Time.UTC(), Hosts: []examinedJSON{}}
	out.Errors, out.Warnings = doctor.Count(d.Findings())
	for _, h := range d.Hosts {
		e := examinedJSON{Host: h.Host, Role: h.Role, Reached: h.Reached, Cards: h.Cards, Findings: []findingJSON{}}
		for _, f := range h.Findings {
			evidence := append([]string{}, f.Evidence...) // an empty list, not null
			e.Findings = append(e.Findings, findingJSON{f.ID, f.Severity, evidence, f.Cause, f.Fix, f.Repair})
		}
		out.Hosts = append(out.Hosts, e)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
