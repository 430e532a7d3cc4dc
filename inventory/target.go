package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/reason"
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

// Way is how a command line says that new hosts are reached. What is empty is left to the inventory, ssh_config and the defaults.
type Way struct {
	User, Key    string
	SudoPassword string // a reference: ${NAME} or file:PATH
	AcceptNew    bool   // trust the keys of hosts that nobody here knows, and pin them in the inventory
}

// Draft is the way as the inventory says it: paths are absolute, or begin at the home directory.
func (w Way) Draft() (DraftSSH, error) {
	s := DraftSSH{User: w.User, Key: w.Key, SudoPassword: w.SudoPassword}
	var err error
	if s.Key != "" {
		if s.Key, err = portable(s.Key); err != nil {
			return s, err
		}
	}
	if s.SudoPassword == "" {
		return s, nil
	}
	if _, err := ParseSecret(s.SudoPassword); err != nil {
		return s, &reason.UsageError{Message: "--sudo-password " + err.Error()}
	}
	if file, ok := strings.CutPrefix(s.SudoPassword, "file:"); ok {
		file, err = portable(file)
		s.SudoPassword = "file:" + file
	}
	return s, err
}

// portable is the path of a file here as it can stand in an inventory that is anywhere.
func portable(path string) (string, error) {
	if strings.HasPrefix(path, "~/") {
		return path, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if home, err := os.UserHomeDir(); err == nil {
		if below, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~/" + below, nil
		}
	}
	return path, nil
}

// Template is an inventory with what is said for all hosts, and with one that there is not. What is wrong with that is the command
// line's.
func Template(path, cluster string, ssh DraftSSH, now time.Time) (*Inventory, error) {
	draft := Draft{
		Cluster: cluster, Version: catalog.Default, Network: Weave, Runtime: Docker, SSH: ssh,
		Hosts: []DraftHost{{Address: "192.0.2.1", Role: ControlPlane}}, // an address for documentation: RFC 5737
	}
	inv, err := Decode(path, draft.Text(), Options{Now: now})
	return inv, misused(err)
}
