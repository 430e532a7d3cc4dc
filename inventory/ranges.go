package inventory

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxHosts is how many machines an inventory may name.
const maxHosts = 5000

var (
	brackets  = regexp.MustCompile(`\[([^\[\]]*)\]`)
	rangePart = regexp.MustCompile(`^(\d{1,9})(?:-(\d{1,9}))?$`)
)

// isRange reports whether s names several things.
func isRange(s string) bool { return strings.ContainsAny(s, "[]") }

// ExpandRange returns what a range such as gpu[01-03,7].lab stands for, in its order. Zeros in front are kept.
// Text without brackets stands for itself.
func ExpandRange(s string) ([]string, error) {
	if !isRange(s) {
		return []string{s}, nil
	}
	m := brackets.FindAllStringSubmatchIndex(s, -1)
	switch {
	case len(m) > 1:
		return nil, fmt.Errorf("%q has two ranges: one is supported", s)
	case len(m) == 0 || strings.ContainsAny(s[:m[0][0]]+s[m[0][1]:], "[]"):
		return nil, fmt.Errorf("%q: the brackets do not match", s)
	}
	before, inside, after := s[:m[0][0]], s[m[0][2]:m[0][3]], s[m[0][1]:]
	if strings.Contains(inside, ":") {
		return nil, fmt.Errorf("%q: an IPv6 address is written without brackets", s)
	}
	var out []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(inside, ",") {
		numbers, err := expandPart(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		for _, n := range numbers {
			if seen[n] {
				return nil, fmt.Errorf("%q names %s twice", s, n)
			}
			seen[n] = true
			out = append(out, before+n+after)
		}
		if len(out) > maxHosts {
			return nil, errTooMany
		}
	}
	return out, nil
}

var errTooMany = fmt.Errorf("names more than %d hosts", maxHosts)

func expandPart(part string) ([]string, error) {
	m := rangePart.FindStringSubmatch(part)
	if m == nil {
		return nil, fmt.Errorf("%q is not a number or a range such as 11-14", part)
	}
	if m[2] == "" {
		return []string{m[1]}, nil
	}
	low, _ := strconv.Atoi(m[1])
	high, _ := strconv.Atoi(m[2])
	switch {
	case low > high:
		return nil, hint{fmt.Sprintf("%s runs backwards", part), m[2] + "-" + m[1]}
	case high-low >= maxHosts:
		return nil, errTooMany
	case strings.HasPrefix(m[1], "0") && len(m[1]) > 1 && len(m[1]) != len(m[2]):
		return nil, errors.New("both ends of a range with zeros in front need the same number of digits")
	}
	width := 0
	if strings.HasPrefix(m[1], "0") {
		width = len(m[1])
	}
	out := make([]string, 0, high-low+1)
	for i := low; i <= high; i++ {
		out = append(out, fmt.Sprintf("%0*d", width, i))
	}
	return out, nil
}
