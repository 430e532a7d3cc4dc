package live

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// progress is how far apt is, by what it prints: the sizes before it downloads, and each file as it comes to it.
type progress struct {
	total, got, current float64 // bytes: of all, of the files before, of the one that comes
	packages            int     // that are being installed
	unpacked, setUp     int
}

var (
	aptNeeds    = regexp.MustCompile(`^Need to get ([0-9.,]+) ?([kMG]?B)(/[0-9.,]+ ?[kMG]?B)? of archives`)
	aptGets     = regexp.MustCompile(`^Get:[0-9]+ .*\[([0-9.,]+) ?([kMG]?B)\]$`)
	aptInstalls = regexp.MustCompile(`^([0-9]+) upgraded, ([0-9]+) newly installed`)
)

// note takes in a line of a step's output.
func (p *progress) note(line string) {
	switch {
	case strings.HasPrefix(line, "Get:"):
		if m := aptGets.FindStringSubmatch(line); m != nil && p.total > 0 {
			p.got, p.current = p.got+p.current, size(m[1], m[2])
		}
	case strings.HasPrefix(line, "Need to get "):
		if m := aptNeeds.FindStringSubmatch(line); m != nil {
			p.total, p.got, p.current = size(m[1], m[2]), 0, 0
		}
	case strings.HasPrefix(line, "Fetched "):
		p.total = 0
	case strings.HasPrefix(line, "Unpacking "):
		p.total = 0
		p.unpacked++
	case strings.HasPrefix(line, "Setting up "):
		p.setUp++
	default:
		if m := aptInstalls.FindStringSubmatch(line); m != nil {
			upgraded, _ := strconv.Atoi(m[1]) // digits; where there are too many, no number is shown
			installed, _ := strconv.Atoi(m[2])
			*p = progress{packages: upgraded + installed}
		}
	}
}

// String is how far it is, in words; empty: nothing is known.
func (p *progress) String() string {
	switch {
	case p.total > 0:
		digits := 0
		if p.total < 10e6 {
			digits = 1
		}
		return fmt.Sprintf("%.*f of %.*f MB", digits, min(p.got, p.total)/1e6, digits, p.total/1e6)
	case p.setUp > 0 && p.setUp < p.packages:
		return fmt.Sprintf("sets up %d of %s", p.setUp, plural.Of(p.packages, "package"))
	case p.unpacked > 0 && p.setUp == 0 && p.unpacked <= p.packages:
		return fmt.Sprintf("unpacks %d of %s", p.unpacked, plural.Of(p.packages, "package"))
	}
	return ""
}

// size is bytes; apt writes thousands with a comma, and units of 1000.
func size(number, unit string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil {
		return 0
	}
	return n * map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
}
