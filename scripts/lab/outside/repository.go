package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// repository is an apt repository, or a suite of one, for one architecture.
type repository struct {
	name       string // docker for ubuntu 24.04
	url        string // base
	suite      string // empty: flat
	components []string
	arch       string             // dpkg's word
	keys       openpgp.EntityList // one of which has to sign; none: the distribution's own, which apt has on every host
}

// offer is what a repository offers: package, version, dependencies.
type offer map[string][]offered

type offered struct{ version, depends string }

// index reads what a repository offers, and says in a row of its own when that cannot be had as its maker signed it.
func (s *surveyor) index(ctx context.Context, r repository) (offer, bool) {
	base := r.url
	if r.suite != "" {
		base += "/dists/" + r.suite
	}
	found := row{name: "packages of " + r.name, where: base}
	defer func() { s.add(found) }()
	data, err := s.get(ctx, base+"/InRelease")
	if err != nil {
		found.state, found.found = dead, err.Error()
		return nil, false
	}
	release := data
	if r.keys != nil {
		if release, err = signed(data, r.keys, s.now); err != nil {
			found.state, found.found = changed, "InRelease: "+err.Error()
			return nil, false
		}
	}
	all := offer{}
	for _, dir := range r.dirs() {
		text, err := s.packages(ctx, base, dir, sums(release))
		if err != nil {
			found.state, found.found = dead, err.Error()
			return nil, false
		}
		all.read(text)
	}
	return all, true
}

// dirs are the folders with Packages, below that with the Release file.
func (r repository) dirs() []string {
	if r.suite == "" {
		return []string{""}
	}
	var out []string
	for _, c := range r.components {
		out = append(out, c+"/binary-"+r.arch+"/")
	}
	return out
}

// packages is the text of a folder's Packages. What the Release file does not list is empty, as apt takes it.
func (s *surveyor) packages(ctx context.Context, base, dir string, sums map[string]string) ([]byte, error) {
	for _, name := range []string{dir + "Packages.gz", dir + "Packages"} {
		sum, listed := sums[name]
		if !listed {
			continue
		}
		data, err := s.get(ctx, base+"/"+name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if have := sha256.Sum256(data); hex.EncodeToString(have[:]) != sum {
			return nil, fmt.Errorf("%s is not what the Release file has the sum of", name)
		}
		if path.Ext(name) == ".gz" {
			return gunzip(data)
		}
		return data, nil
	}
	if dir == "" {
		return nil, errors.New("the Release file lists neither Packages.gz nor Packages")
	}
	return nil, nil
}

var sumLine = regexp.MustCompile(`^ ([0-9a-f]{64})\s+\d+\s+(\S+)$`)

// sums are the SHA-256 sums that a Release file lists, by file.
func sums(release []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(string(release), "\n") {
		if m := sumLine.FindStringSubmatch(strings.TrimRight(line, "\r ")); m != nil {
			out[path.Clean(m[2])] = m[1]
		}
	}
	return out
}

// read adds the stanzas of a Packages file.
func (o offer) read(text []byte) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 4<<20)
	var name string
	var p offered
	flush := func() {
		if name != "" {
			o[name] = append(o[name], p)
		}
		name, p = "", offered{}
	}
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "":
			flush()
		case "Package":
			name = value
		case "Version":
			p.version = value
		case "Depends":
			p.depends = value
		}
	}
	flush()
}

// add takes in what another suite offers.
func (o offer) add(other offer) {
	for name, all := range other {
		o[name] = append(o[name], all...)
	}
}

// versions are those of a package.
func (o offer) versions(name string) []string {
	var out []string
	for _, p := range o[name] {
		out = append(out, p.version)
	}
	return out
}

// upstream are the versions of a package without what its packager added: 1.36.3 of 1.36.3-1.1.
func (o offer) upstream(name string) []string {
	var out []string
	for _, v := range o.versions(name) {
		version, _, _ := strings.Cut(v, "-")
		out = append(out, version)
	}
	slices.SortFunc(out, compareNumbers)
	return slices.Compact(out)
}
