package facts

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Deprecated is a version of an API that is to be removed and that somebody has asked an API server for since that started.
type Deprecated struct {
	Group, Version, Resource string   // policy, v1beta1, podsecuritypolicies; the core's group is empty
	Removed                  string   // the minor that does not have it any more: 1.37
	Objects                  []string // that were last written by it: "namespace/name (by whom)"
}

// ParseDeprecated parses the output of scripts/deprecated.sh.
func ParseDeprecated(output []byte) ([]Deprecated, error) {
	a, err := split(output, "kgpu-deprecated=1")
	if err != nil {
		return nil, err
	}
	var out []Deprecated
	for _, line := range a["api"] {
		f := strings.Fields(InLine(line))
		if len(f) != 4 {
			return nil, bad("api", line, errors.New("not four words"))
		}
		out = append(out, Deprecated{Group: strings.TrimPrefix(f[0], "-"), Version: f[1], Resource: f[2], Removed: f[3]})
	}
	for _, line := range a["object"] {
		f := strings.Fields(InLine(line))
		if len(f) < 3 {
			return nil, bad("object", line, errors.New("not three words"))
		}
		for i := range out {
			if out[i].Resource == f[0] {
				name := strings.TrimPrefix(f[len(f)-1], "/")
				out[i].Objects = append(out[i].Objects, name+" ("+strings.Join(f[1:len(f)-1], " ")+")")
			}
		}
	}
	return out, nil
}

// MergeDeprecated is what several API servers tell: each knows of itself only what it was asked for, and all know the same objects.
func MergeDeprecated(told ...[]Deprecated) []Deprecated {
	var out []Deprecated
	for _, d := range slices.Concat(told...) {
		at := slices.IndexFunc(out, func(other Deprecated) bool { return other.String() == d.String() })
		switch {
		case at < 0:
			out = append(out, d)
		case len(out[at].Objects) == 0:
			out[at].Objects = d.Objects
		}
	}
	slices.SortFunc(out, func(a, b Deprecated) int {
		return cmp.Or(cmp.Compare(a.Removed, b.Removed), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// String is the API as kubectl takes it: podsecuritypolicies.v1beta1.policy.
func (d Deprecated) String() string {
	return strings.TrimSuffix(d.Resource+"."+d.Version+"."+d.Group, ".")
}
