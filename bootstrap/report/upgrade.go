package report

import (
	"io"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// UpgradeCheck is what is to be known before Kubernetes is upgraded.
type UpgradeCheck struct {
	Running       catalog.Version
	Rounds        []catalog.Version  // the versions that the cluster comes to, one after the other; none: it has the version
	Asked, Silent []string           // the control planes whose API servers told what they were asked for, and the others
	Deprecated    []facts.Deprecated // versions of APIs that somebody uses and newer minors do not have
	Took          []NodeTime         // the last time
}

// NodeTime is how long a node was without pods.
type NodeTime struct {
	Node string
	Took time.Duration
}

// PrintUpgradeCheck writes it: what is gone in a version on the way comes as a warning.
func PrintUpgradeCheck(w io.Writer, c *UpgradeCheck) error {
	p := On(w)
	way := "Kubernetes " + c.Running.String()
	for _, v := range c.Rounds {
		way += ", then " + v.String()
	}
	p.say(bold, way, "")
	gone := 0
	for _, d := range c.Deprecated {
		if c.removes(d) {
			gone++
			p.say(yellow, "warning:", " "+d.String()+" is not in Kubernetes "+d.Removed+" any more, and is in use"+objects(d))
		}
	}
	for _, d := range c.Deprecated {
		if !c.removes(d) {
			p.say(plain, "", d.String()+" goes away with Kubernetes "+printable.Line(d.Removed)+", and is in use"+objects(d))
		}
	}
	if gone == 0 {
		p.say(green, "Nothing that was asked of "+c.asked()+" is gone in a version on the way.", "")
	}
	if len(c.Silent) > 0 {
		p.say(yellow, "warning:", " not asked: "+strings.Join(c.Silent, ", ")+". Each API server knows only what it was asked itself: run `kgpu upgrade --check` again when all answer")
	}
	for _, n := range c.Took {
		p.say(plain, "", "the last time, "+printable.Line(n.Node)+" was without pods for "+n.Took.Round(time.Second).String())
	}
	return p.to.err
}

// asked names the API servers that told.
func (c *UpgradeCheck) asked() string {
	switch {
	case len(c.Asked)+len(c.Silent) == 1:
		return "the API server since it started"
	case len(c.Asked) == 1:
		return "the API server of " + c.Asked[0] + " since it started"
	}
	return "the API servers of " + strings.Join(c.Asked, ", ") + " since they started"
}

// removes reports whether a version on the way does not have the API.
func (c *UpgradeCheck) removes(d facts.Deprecated) bool {
	at, err := catalog.ParseVersion(d.Removed + ".0")
	if err != nil || len(c.Rounds) == 0 {
		return false
	}
	last := c.Rounds[len(c.Rounds)-1]
	return at.Compare(catalog.Version{Major: last.Major, Minor: last.Minor}) <= 0
}

// objects names those that were last written by the API.
func objects(d facts.Deprecated) string {
	if len(d.Objects) == 0 {
		return ""
	}
	return ": " + printable.Line(strings.Join(d.Objects, ", "))
}
