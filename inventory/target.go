package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Target is a machine as people name it on a command line.
type Target struct {
	User    string // empty: not said
	Address string // IP address or DNS name
	Port    int    // zero: not said
}

// bracketed is an IPv6 address in brackets, with what follows it.
var bracketed = regexp.MustCompile(`^\[([^\[\]]*:[^\[\]]*)\](.*)$`)

// Ways to write several hosts that others have: 10.0.0.1-5, 10.0.0.0/24.
var otherRange = regexp.MustCompile(`^[0-9]+(\.[0-9]+){3}(-[0-9.]+|/[0-9]+)$`)

// ParseTargets reads [user@]address[:port]. The address may be a range; an IPv6 address with a port stands in brackets.
func ParseTargets(s string) ([]Target, error) {
	var t Target
	rest := s
	if strings.Contains(s, "://") {
		return nil, errors.New("a host is named as user@address:port, without ssh:// and without a password")
	}
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		user := s[:at]
		if strings.Contains(user, ":") { // a password, perhaps: it is not repeated
			return nil, errors.New("a host is named as user@address:port, without a password")
		}
		if _, err := userName(user); err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		t.User, rest = user, s[at+1:]
	}
	port := ""
	if m := bracketed.FindStringSubmatch(rest); m != nil {
		rest, port = m[1], m[2]
	} else if _, err := netip.ParseAddr(rest); err != nil && strings.Contains(rest, ":") {
		at := strings.LastIndexByte(rest, ':')
		rest, port = rest[:at], rest[at:]
	}
	if port != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(port, ":"))
		if err != nil || port[0] != ':' || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q: the port must be a number from 1 to 65535", s)
		}
		t.Port = n
	}
	switch {
	case rest == "":
		return nil, fmt.Errorf("%q has no address: a host is named as user@address:port", s)
	case otherRange.MatchString(rest):
		return nil, fmt.Errorf("%q: several hosts are written as 10.0.0.[1-5]", s)
	case strings.Contains(rest, ",") && !strings.Contains(rest, "["):
		return nil, fmt.Errorf("%q: hosts have blanks between them, no commas", s)
	}
	addresses, err := ExpandRange(rest)
	if err != nil {
		return nil, err
	}
	var out []Target
	for _, a := range addresses {
		if t.Address, err = address(a); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// IsAt reports whether the host is the machine that the target names: by its address, in whatever spelling.
func (t Target) IsAt(h Host) bool { return canonical(t.Address) == canonical(h.Address) }

// DistinctTargets drops targets that are there before. Two that differ in user or port only are an error: an inventory names
// a machine by its address.
func DistinctTargets(targets []Target) ([]Target, error) {
	var out []Target
	first := map[string]Target{}
	for _, t := range targets {
		switch other, there := first[canonical(t.Address)]; {
		case !there:
			first[canonical(t.Address)] = t
			out = append(out, t)
		case other.User != t.User || other.Port != t.Port:
			return nil, fmt.Errorf("%s is named twice, with another user or port: a host is named once, by its address", t.Address)
		}
	}
	if len(out) > maxHosts {
		return nil, errTooMany
	}
	return out, nil
}
