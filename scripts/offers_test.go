package scripts

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
)

// release is Kubernetes at one version.
func release(version string) []deb {
	return []deb{{name: "kubelet", version: version}, {name: "kubeadm", version: version}, {name: "kubectl", version: version}}
}

// A host tells which patches of a minor its repository has whole, and only what an index says that one of the keys signed.
func TestOffers(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	fingerprint := s.signedRepository(debs(release("1.36.3-1.1"), release("1.36.10-1.1"), release("1.36.10-2.1"), release("1.36.4-1.1"), release("1.35.12-1.1"), release("1.37.0~rc.1-1.1"),
		[]deb{{name: "kubelet", version: "1.36.11-1.1"}, {name: "kubectl", version: "1.36.11-1.1"}, {name: "cri-tools", version: "1.36.12-1.1"}})...)
	s.write("etc/apt/apt.conf.d/50hooks", `APT::Update::Post-Invoke { "touch /etc/hooked"; }; APT::Update::Post-Invoke-Success { "touch /etc/hooked"; }; APT::Update::Pre-Invoke { "touch /etc/hooked"; };`)
	const other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	ask := func(line string) *facts.AvailableVersions {
		t.Helper()
		s.write("tmp/asked", stubbed(Reach())+line+"\n")
		offer, err := facts.ParseAvailableVersions([]byte(s.ok(s.script("bash -s </tmp/asked")).output))
		if err != nil || offer == nil {
			t.Fatalf("%v, %v", offer, err)
		}
		return offer
	}
	lists := s.ok(s.script("ls -R /var/lib/apt /var/cache/apt /tmp | grep -v asked")).output
	before := s.snapshot()
	if got := ask("kubernetes 1.36 file:///repo " + other + "," + fingerprint + " file:///repo/key"); !slices.Equal(got.Versions, []catalog.Version{{Major: 1, Minor: 36, Patch: 10}, {Major: 1, Minor: 36, Patch: 4}, {Major: 1, Minor: 36, Patch: 3}}) {
		t.Errorf("%+v", got)
	}
	for line, want := range map[string]string{
		"kubernetes 1.38 file:///repo " + fingerprint + " file:///repo/key":       "it has none",
		"kubernetes 1.36 file:///repo " + other + " file:///repo/key":             "signatures couldn't be verified",
		"kubernetes 1.36 file:///gone " + fingerprint + " file:///repo/key":       "file:/gone",
		"kubernetes 1.36 file:///repo " + fingerprint + " file:///repo/no":        "file:/repo/no",
		"kubernetes 1.36 http://127.0.0.1:9 " + fingerprint + " file:///repo/key": "127.0.0.1",
	} {
		if got := ask(line); len(got.Versions) > 0 || !strings.Contains(got.Why, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	s.same(before)
	s.prints("ls -R /var/lib/apt /var/cache/apt /tmp | grep -v asked", lists) // or who was asked wrote something
}

// A key that has expired is looked for at the other addresses, and a proxy is taken from the inventory.
func TestOffersByAnExtendedKey(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	k := s.endedRepository(release("1.36.3-1.1")...)
	for keys, want := range map[string]int{"file:///repo/key": 0, "file:///repo/key file:///repo/gone file:///repo/new": 1} {
		s.write("tmp/asked", string(Reach())+"kubernetes 1.36 file:///repo "+k.fingerprint+" "+keys+"\napt Acquire::https::Proxy \"http://127.0.0.1:9\";\n")
		offer, err := facts.ParseAvailableVersions([]byte(s.ok(s.script("bash -s </tmp/asked")).output))
		if err != nil || len(offer.Versions) != want {
			t.Errorf("%s: %+v, %v", keys, offer, err)
		}
	}
	s.write("tmp/asked", string(Reach())+"kubernetes 1.36 http://mirror.invalid "+k.fingerprint+" file:///repo/new\napt Acquire::http::Proxy \"http://127.0.0.1:9\";\n")
	contains(t, s.ok(s.script("bash -s </tmp/asked")).output, "127.0.0.1") // or the proxy was not asked
}

// A host without containerd tells which one apt would install: Docker's, or the distribution's, and then why not Docker's.
func TestOffersOfContainerd(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	fingerprint := s.signedRepository(deb{name: "containerd.io", version: "2.3.7-1~debian.13~trixie"}, deb{name: "containerd", version: "9"})
	s.repositoryOf("debian", deb{name: "containerd", version: "1.7.24~ds1-6"})
	s.write("etc/apt/sources.list", "deb [trusted=yes] file:/debian ./\n")
	s.ok(s.script("apt_update"))
	before := s.snapshot()
	for line, want := range map[string]facts.Containerd{
		"file:///repo " + fingerprint + " file:///repo/key /":             {Version: "2.3.7-1~debian.13~trixie"},
		"file:///gone " + fingerprint + " file:///repo/key /":             {Version: "1.7.24~ds1-6", Why: "file:/gone"},
		"file:///repo " + strings.Repeat("A", 40) + " file:///repo/key /": {Version: "1.7.24~ds1-6", Why: "signatures couldn't be verified"},
	} {
		s.write("tmp/asked", stubbed(Reach())+"containerd "+line+"\n")
		got, err := facts.ParseContainerd([]byte(s.ok(s.script("bash -s </tmp/asked")).output))
		if err != nil || got.Version != want.Version || !strings.Contains(got.Why, want.Why) || want.Why == "" && got.Why != "" {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	s.same(before)
}
