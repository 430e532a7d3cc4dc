package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct{ in, want, wantErr string }{
		{"1.36", "1.36.3", ""},
		{"v1.36", "1.36.3", ""},
		{"1.36.1", "1.36.1", ""},
		{"v1.36.3", "1.36.3", ""},
		{"1.36.99", "1.36.99", ""}, // newer than this kgpu; the minor still gets patches
		{"1.23", "1.23.17", ""},
		{"1.23.17", "1.23.17", ""},
		{"1.23.18", "", "the last 1.23 is 1.23.17"},
		{"1.6", "1.6.13", ""},
		{"1.5", "", "too old"},
		{"1.5.8", "", "--experimental-nvidia-gpus"},
		{"1.37", "1.37.2", ""},
		{"1.34", "1.34.13", ""},
		{"1.34.14", "", "the last 1.34 is 1.34.13"},
		{"1.38", "", "not known"},
		{"1.38.0", "", "not known"},
		{"2.0.0", "", "does not exist"},
		{"1", "", "neither"},
		{"latest", "", "neither"},
		{"1.36.3-rc.0", "", "neither"},
		{"1.36.3.1", "", "neither"},
		{"", "", "neither"},
	} {
		got, err := Resolve(c.in)
		switch {
		case c.wantErr == "" && err != nil:
			t.Errorf("Resolve(%q): %v", c.in, err)
		case c.wantErr == "" && got.String() != c.want:
			t.Errorf("Resolve(%q) = %s, want %s", c.in, got, c.want)
		case c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)):
			t.Errorf("Resolve(%q): %v, want an error with %q", c.in, err, c.wantErr)
		case c.wantErr != "" && !got.IsZero():
			t.Errorf("Resolve(%q) = %s along with an error", c.in, got)
		}
	}
}

func TestVersionCompare(t *testing.T) {
	ordered := []string{"1.6.13", "1.9.0", "1.10.0", "1.36.2", "1.36.3", "1.36.10"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := version(t, a).Compare(version(t, b))
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s.Compare(%s) = %d", a, b, got)
			}
		}
	}
}

func TestVersionString(t *testing.T) {
	v := version(t, "v1.36.3")
	if v.String() != "1.36.3" || v.MinorString() != "1.36" {
		t.Errorf("%s, %s", v, v.MinorString())
	}
}

func TestSupportedMinors(t *testing.T) {
	m, ok := Kubernetes(35)
	if !ok {
		t.Fatal("1.35 is not known")
	}
	lastDay := time.Date(2027, 2, 28, 23, 59, 59, 0, time.UTC)
	if !m.Supported(lastDay) {
		t.Error("1.35 is not supported on its last day")
	}
	if m.Supported(lastDay.Add(time.Second)) {
		t.Error("1.35 is supported after its last day")
	}
	if got := SupportedMinors(lastDay); !slices.Equal(got, []string{"1.37", "1.36", "1.35"}) {
		t.Errorf("SupportedMinors = %v", got)
	}
}

// TestMinorsTable: no minor is missing between the oldest and the newest, and their data fit each other.
func TestMinorsTable(t *testing.T) {
	apis := map[int]string{6: "v1alpha1", 10: "v1alpha1", 11: "v1alpha2", 12: "v1alpha3", 13: "v1beta1", 14: "v1beta1", 15: "v1beta2", 21: "v1beta2", 22: "v1beta3", 30: "v1beta3", 31: "v1beta4", 37: "v1beta4"}
	for n := oldestMinor; n <= newestMinor; n++ {
		m, ok := Kubernetes(n)
		if !ok || m.Number != n {
			t.Fatalf("1.%d: %+v, %t", n, m, ok)
		}
		if next, ok := Kubernetes(n + 1); ok && !m.EndOfLife.Before(next.EndOfLife) {
			t.Errorf("1.%d ends after 1.%d", n, n+1)
		}
		if m.Published() != (n >= 24) {
			t.Errorf("1.%d: Published() = %t", n, m.Published())
		}
		if want, ok := apis[n]; ok && m.KubeadmAPI != want {
			t.Errorf("1.%d: kubeadm API %q, want %q", n, m.KubeadmAPI, want)
		}
	}
	if len(minors) != newestMinor-oldestMinor+1 {
		t.Errorf("%d minors", len(minors))
	}
	if v, err := Resolve(Default); err != nil || !minors[v.Minor].Supported(AsOf) {
		t.Errorf("Default resolves to %s, %v", v, err)
	}
}
