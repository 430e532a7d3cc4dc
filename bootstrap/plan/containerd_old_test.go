package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// TestOldContainerd writes down what a plan says of containerds before 2, which are there or would come: once, with all their hosts.
func TestOldContainerd(t *testing.T) {
	has := func(name, version string) func(*facts.Host) {
		return func(f *facts.Host) { f.Packages[name] = facts.Package{Version: version} }
	}
	gets := func(version, why string) func(*facts.Host) {
		return func(f *facts.Host) { f.Containerd = facts.Containerd{Version: version, Why: why} }
	}
	var out strings.Builder
	for _, c := range []struct {
		name, inventory string
		of              func(*facts.Host) // w1 and w2
		warns           bool
	}{
		{"Debian's is there", threeHosts + containerd, has("containerd", "1.7.24~ds1-6+deb13u1"), true},
		{"Docker's is there", threeHosts + containerd, has("containerd.io", "1.7.29-1~ubuntu.24.04~noble"), true},
		{"Docker's of today is there", threeHosts + containerd, has("containerd.io", "2.3.7-1~debian.13~trixie"), false},
		{"the distribution's, of today", threeHosts + containerd, has("containerd", "2.2.1-0ubuntu1"), false},
		{"Docker's will come", threeHosts + containerd, gets("2.3.7-1~debian.13~trixie", ""), false},
		{"a mirror's, of old, will come", threeHosts + containerd, gets("1.6.33-1", ""), true},
		{"Debian's will come", threeHosts + containerd, gets("1.7.24~ds1-6+deb13u1", "it has none"), true},
		{"nobody knows what will come", threeHosts + containerd, gets("", "Could not resolve 'download.docker.com'"), false},
		{"docker runs the pods", threeHosts + "network: flannel\n", has("containerd", "1.7.24~ds1-6+deb13u1"), false},
	} {
		inv := decode(t, c.inventory)
		seen := hostFacts(inv)
		c.of(seen["w1"])
		c.of(seen["w2"])
		g := planUp(t, inv, seen)
		told := slices.DeleteFunc(g.MergedWarnings(), func(w string) bool { return !strings.Contains(w, string(reason.HostContainerdOld)) })
		if (len(told) == 1) != c.warns || len(told) > 1 {
			t.Errorf("%s: %q", c.name, told)
		}
		fmt.Fprintf(&out, "# %s\n%s", c.name, lines(append(told, "")...))
	}
	golden(t, "old-containerd", out.String())
}

// Who has no containerd is asked which one would come, in the same breath as for Kubernetes.
func TestContainerdIsAskedFor(t *testing.T) {
	inv := decode(t, threeHosts+containerd+"proxy: {http: \"http://proxy.example.com:3128\"}\n")
	seen := hostFacts(inv)
	seen["w2"].Packages["containerd"] = facts.Package{Version: "1.7.24~ds1-6+deb13u1"}
	got, err := OfferQuestions(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	words := func(host string) (first []string) {
		for _, line := range got[host] {
			word, _, _ := strings.Cut(line, " ")
			first = append(first, word)
		}
		return first
	}
	if w1, w2 := words("w1"), words("w2"); !slices.Equal(w1, []string{"kubernetes", "containerd", "apt"}) || !slices.Equal(w2, []string{"kubernetes", "apt"}) {
		t.Errorf("w1 is asked %q, w2 %q", got["w1"], got["w2"])
	}
	const want = "containerd https://download.docker.com/linux/ubuntu 9DC858229FC7DD38854AE2D88D81803C0EBFCD88 https://download.docker.com/linux/ubuntu/gpg noble stable"
	if !slices.Contains(got["w1"], want) {
		t.Errorf("w1 is asked %q", got["w1"])
	}
}
