package catalog

import (
	"cmp"
	"strconv"
	"strings"
)

// CompareDebian compares package versions; negative if a is older than b. Source: deb-version(7).
func CompareDebian(a, b string) int {
	epochA, upstreamA, revisionA := splitDebian(a)
	epochB, upstreamB, revisionB := splitDebian(b)
	return cmp.Or(cmp.Compare(epochA, epochB), compareDebianPart(upstreamA, upstreamB), compareDebianPart(revisionA, revisionB))
}

func splitDebian(version string) (epoch int, upstream, revision string) {
	if before, after, ok := strings.Cut(version, ":"); ok {
		epoch, _ = strconv.Atoi(before) // dpkg accepted it
		version = after
	}
	if i := strings.LastIndex(version, "-"); i >= 0 {
		return epoch, version[:i], version[i+1:]
	}
	return epoch, version, ""
}

// compareDebianPart compares runs of non-digits by character and runs of digits as numbers, alternately.
func compareDebianPart(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !isDigit(a[0]) || b != "" && !isDigit(b[0]) {
			if c := cmp.Compare(debianOrder(a), debianOrder(b)); c != 0 {
				return c
			}
			a, b = a[1:], b[1:] // they are equal, so neither has ended
		}
		var x, y string
		x, a = leadingDigits(a)
		y, b = leadingDigits(b)
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
	}
	return 0
}

// debianOrder sorts ~ before the end, the end before letters, and letters before everything else.
func debianOrder(s string) int {
	switch {
	case s == "" || isDigit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z':
		return int(s[0])
	}
	return int(s[0]) + 256
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// leadingDigits splits off the number at the start, without leading zeros.
func leadingDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
