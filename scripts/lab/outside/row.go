package main

import (
	"cmp"
	"slices"
	"strings"
)

// state says how something that kgpu names is found, worse ones last.
type state int

// The states.
const (
	ok      state = iota
	newer         // it is there, and so is something newer
	aged          // it is there, and its maker's support or its key ends soon, or has ended
	changed       // it is there, and is not what kgpu says
	dead          // it is not there
)

func (s state) String() string { return [...]string{"ok", "newer", "aged", "changed", "dead"}[s] }

// row is one thing that kgpu names and what was found of it.
type row struct {
	name  string // what kgpu says: key of docker, kubeadm 1.36.3
	where string // what was asked: a URL, or an image's name
	state state
	found string // one line; empty for what is ok
}

// id tells rows apart.
func (r row) id() string {
	if strings.HasSuffix(r.name, r.where) {
		return r.name
	}
	return r.name + " " + r.where
}

func worst(rows []row) state {
	s := ok
	for _, r := range rows {
		s = max(s, r.state)
	}
	return s
}

// sorted has worse rows first.
func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.state, a.state), strings.Compare(a.id(), b.id())) })
	return rows
}
