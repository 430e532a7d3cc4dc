package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Diagnosis is what kgpu doctor found.
type Diagnosis struct {
	Cluster string
	Time    time.Time
	AtWork  string // who changes the cluster with kgpu now, and what; empty: nobody
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

// PrintDiagnosis writes what was found: the hosts with the worst findings first, what is the same on several of them once, the
// healthy ones on one line, and a summary.
func PrintDiagnosis(w io.Writer, d *Diagnosis) error {
	p := On(w)
	if d.AtWork != "" {
		p.atWork(d.AtWork)
	}
	for _, c := range complaints(d.Hosts) {
		p.say(bold, strings.Join(c.hosts, ", "), "")
		for _, f := range c.findings {
			p.finding(f)
		}
		p.say(plain, "", "")
	}
	var healthy []string
	for _, h := range d.Hosts {
		if len(h.Findings) == 0 {
			healthy = append(healthy, h.Host)
		}
	}
	if len(healthy) > 0 && d.AtWork == "" {
		p.say(green, "healthy:", " "+strings.Join(healthy, ", "))
	}
	failures, warnings := doctor.Count(d.Findings())
	p.say(bold, fmt.Sprintf("%d of %s with findings: %s, %s", len(d.Hosts)-len(healthy), plural.Of(len(d.Hosts), "host"),
		plural.Of(failures, "error"), plural.Of(warnings, "warning")), "")
	return p.to.err
}

// atWork says in place of a judgement who is changing the cluster.
func (p *Page) atWork(who string) {
	p.say(yellow, "kgpu is at work:", " "+who+". What it changes is judged when it has ended; `kgpu attach` shows the progress.")
}

func (p *Page) finding(f *doctor.Finding) {
	colour := yellow
	if f.Severity == doctor.Error {
		colour = red
	}
	p.say(colour, "  "+string(f.Severity), " "+f.ID)
	for _, line := range f.Evidence {
		p.say(dim, "    > "+line, "")
	}
	p.say(plain, "", "    "+f.Cause)
	p.say(bold, "    fix:", " "+f.Fix)
}

// complaint is what some hosts have in common.
type complaint struct {
	hosts    []string
	findings []*doctor.Finding
}

// complaints are the findings of all hosts, those that are the same on several of them once; who has the worst comes first.
// Where only the evidence differs, it says of which host it is.
func complaints(examined []Examined) []complaint {
	hosts := slices.Clone(examined)
	slices.SortStableFunc(hosts, func(a, b Examined) int {
		x, xx := doctor.Count(a.Findings)
		y, yy := doctor.Count(b.Findings)
		return cmp.Or(y-x, yy-xx)
	})
	type key struct {
		id         string
		severity   doctor.Severity
		cause, fix string
	}
	type told struct {
		hosts []string
		each  []doctor.Finding
	}
	var order []*told
	same := map[key]*told{}
	for _, h := range hosts {
		for _, f := range h.Findings {
			k := key{f.ID, f.Severity, f.Cause, f.Fix}
			if t := same[k]; t == nil || slices.Contains(t.hosts, h.Host) {
				same[k] = &told{}
				order = append(order, same[k])
			}
			t := same[k]
			t.hosts, t.each = append(t.hosts, h.Host), append(t.each, f)
		}
	}
	var out []complaint
	for _, t := range order {
		f := t.each[0]
		if slices.ContainsFunc(t.each, func(o doctor.Finding) bool { return !slices.Equal(o.Evidence, f.Evidence) }) {
			f.Evidence = nil
			for i, o := range t.each {
				for _, line := range o.Evidence {
					f.Evidence = append(f.Evidence, t.hosts[i]+": "+line)
				}
			}
		}
		i := slices.IndexFunc(out, func(c complaint) bool { return slices.Equal(c.hosts, t.hosts) })
		if i < 0 {
			i, out = len(out), append(out, complaint{hosts: t.hosts})
		}
		out[i].findings = append(out[i].findings, &f)
	}
	return out
}

// DiagnosisSchema is the version of what DiagnosisJSON writes: it grows when a field changes its meaning or goes.
const DiagnosisSchema = 1

// What doctor.schema.json describes.
type (
	diagnosisJSON struct {
		Schema   int            `json:"schema"`
		Cluster  string         `json:"cluster"`
		Time     time.Time      `json:"time"`
		AtWork   string         `json:"atWork,omitempty"`
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

// DiagnosisJSON writes what was found as one object, which bootstrap/report/schema describes.
func DiagnosisJSON(w io.Writer, d *Diagnosis) error {
	out := diagnosisJSON{Schema: DiagnosisSchema, Cluster: d.Cluster, Time: d.Time.UTC(), AtWork: printable.Line(d.AtWork), Hosts: []examinedJSON{}}
	out.Errors, out.Warnings = doctor.Count(d.Findings())
	for _, h := range d.Hosts {
		e := examinedJSON{Host: h.Host, Role: h.Role, Reached: h.Reached, Cards: h.Cards, Findings: []findingJSON{}}
		for _, f := range h.Findings {
			evidence := append([]string{}, f.Evidence...) // an empty list, not null
			e.Findings = append(e.Findings, findingJSON{f.ID, f.Severity, evidence, f.Cause, f.Fix, f.Repair})
		}
		out.Hosts = append(out.Hosts, e)
	}
	return writeJSON(w, out)
}
