package catalog

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// Version is an exact Kubernetes version. The zero value means none.
type Version struct{ Major, Minor, Patch int }

var exactVersion = regexp.MustCompile(`^v?(\d{1,3})\.(\d{1,3})\.(\d{1,3})$`)

// ParseVersion parses an exact version: 1.36.3 or v1.36.3.
func ParseVersion(s string) (Version, error) {
	m := exactVersion.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not an exact version such as %s", s, newest())
	}
	// The digits are few, so Atoi cannot fail.
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	patch, _ := strconv.Atoi(m[3])
	return Version{major, minor, patch}, nil
}

// String is the version without a leading v: 1.36.3.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// MinorString is the version without its patch: 1.36.
func (v Version) MinorString() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// IsZero reports whether v is the zero value.
func (v Version) IsZero() bool { return v == Version{} }

// Compare is negative if v is older than w, positive if it is newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}
