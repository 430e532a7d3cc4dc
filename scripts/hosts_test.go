package scripts

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

const (
	apiName = "api-78e651.lab.kgpu.internal"
	apiLine = "10.0.0.10 " + apiName + " # kgpu\n"
	apiUnit = "/etc/systemd/system/kgpu-api-name.service"
)

// apiHost is about to be told a name.
func apiHost(t *testing.T, hosts string) *sandbox {
	s := newSandbox(t)
	if hosts != "" {
		s.write("etc/hosts", hosts)
	}
	s.must(os.MkdirAll(s.path("etc/systemd/system"), 0o755))
	s.write("var/units/kgpu-api-name.service", "loaded,inactive,disabled\n") // systemd's view of the file that comes
	s.write("etc/nsswitch.conf", "hosts: files\n")
	s.value("name", apiName)
	s.value("address", "10.0.0.10")
	s.file(apiUnit, "# Written by kgpu.\n")
	return s
}

// The line is beside those of others, whatever they look like and whoever changes them; undo takes it away and nothing else.
func TestHostsLine(t *testing.T) {
	t.Parallel()
	for name, hosts := range map[string]string{
		"as installed":       "127.0.0.1 localhost\n127.0.1.1 gpu1\n\n# The following lines are desirable\n::1 ip6-localhost\n",
		"no end of line":     "127.0.0.1 localhost\n10.0.0.5 nas",
		"a mark of theirs":   "127.0.0.1 localhost\n10.0.0.5 nas # kgpu\n10.0.0.6 " + strings.ReplaceAll(apiName, ".", "-") + " # kgpu\n",
		"there is none":      "",
		"another's for kgpu": "127.0.0.1 localhost\n10.0.0.10 " + apiName + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apiHost(t, hosts)
			before := s.snapshot()
			s.ok(s.step("os-hosts"))
			s.ok(s.step("os-hosts"))
			s.holds("etc/hosts", apiLine+hosts)
			s.absent("var/units.outdated")
			s.undone(before)
		})
	}
}

// A name that nodes use leads elsewhere when the API server answers there, and stays where it was otherwise.
func TestHostsLineThatMoves(t *testing.T) {
	t.Parallel()
	s := apiHost(t, "127.0.0.1 localhost\n")
	s.ok(s.step("os-hosts"))
	s.value("address", "10.0.0.100")
	s.value("awaited", "yes")
	s.write(stepDir+"/timeout", "600")
	s.stub("timeout", "#!/bin/bash\n[[ $* != */dev/tcp/*10.0.0.100\\ 6443 ]] || { [[ -e /serves ]]; exit; }\nexec /usr/bin/timeout \"$@\"\n")
	s.stub("sleep", "#!/bin/sh\necho 20 >"+stepDir+"/timeout\n")
	r := s.step("os-hosts")
	s.fails(r, 1, "API_UNREACHABLE")
	s.holds("etc/hosts", apiLine+"127.0.0.1 localhost\n")
	s.write("serves", "")
	s.write(stepDir+"/timeout", "600")
	s.ok(s.step("os-hosts"))
	s.holds("etc/hosts", strings.Replace(apiLine, "10.0.0.10", "10.0.0.100", 1)+"127.0.0.1 localhost\n")
}

// What somebody wrote beside it since stays, and so do mode and owner.
func TestHostsLineOfAFileThatOthersChange(t *testing.T) {
	t.Parallel()
	s := apiHost(t, "127.0.0.1 localhost\n")
	s.ok(s.script("chmod 600 /etc/hosts; chown 7:8 /etc/hosts"))
	s.ok(s.step("os-hosts"))
	s.ok(s.script("printf '10.0.0.7 printer' >>/etc/hosts"))
	s.value("address", "10.0.0.20") // the control plane's changed
	s.ok(s.step("os-hosts"))
	if got, want := s.read("etc/hosts"), strings.Replace(apiLine, "10.0.0.10", "10.0.0.20", 1)+"127.0.0.1 localhost\n10.0.0.7 printer"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.value("name", "api-0123ab.lab.kgpu.internal") // the cluster is another
	s.ok(s.step("os-hosts"))
	if got := s.read("etc/hosts"); strings.Contains(got, apiName) || strings.Count(got, "# kgpu\n") != 1 {
		t.Errorf("%q", got)
	}
	s.ok(s.script("undo_all; stat -c '%a %u %g' /etc/hosts >/tmp/stat"))
	if got, stat := s.read("etc/hosts"), s.read("tmp/stat"); got != "127.0.0.1 localhost\n10.0.0.7 printer" || stat != "600 7 8\n" {
		t.Errorf("%q, %s", got, stat)
	}
}

// A host that resolves the name to something else, or not by its file, is told about.
func TestNameThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"echo '10.0.0.99       STREAM " + apiName + "'": "leads to 10.0.0.99, not to 10.0.0.10",
		"exit 2": "leads to nothing, not to 10.0.0.10",
		"echo '10.0.0.10 STREAM x'; echo '10.0.0.99 STREAM'": "leads to 10.0.0.10; 10.0.0.99, not to 10.0.0.10",
	} {
		s := apiHost(t, "127.0.0.1 localhost\n")
		s.stub("getent", "#!/bin/sh\n[ $1 != ahosts ] || { "+answer+"; }\n")
		r := s.step("os-hosts")
		if s.fails(r, 1, "HOST_API_NAME"); !strings.Contains(r.failure, want) {
			t.Errorf("%s: it says %q", answer, r.failure)
		}
	}
}

// The unit puts the line back where a boot has made the file anew, and changes nothing where it is there.
func TestLineAfterABoot(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	const command = `/bin/sh -c 'grep -qxF "$0" /etc/hosts || sed -i "1i $0" /etc/hosts' "10.0.0.10 ` + apiName + ` # kgpu"`
	if planned := readFile(t, "../bootstrap/plan/api_name.go"); !strings.Contains(planned, "ExecStart="+strings.NewReplacer("$", "$$", "10.0.0.10 "+apiName+" # kgpu", "%s").Replace(command)+"\n") {
		t.Fatal("that is not what the unit runs")
	}
	const anew = "127.0.0.1 localhost\n127.0.1.1 gpu1\n"
	s.write("etc/hosts", anew)
	for range 2 {
		s.ok(s.script(command))
		s.holds("etc/hosts", apiLine+anew)
	}
}

// The facts tell of the names that kgpu's lines and kubeconfigs have, and of no others, and what the administrator's file leads to.
func TestFactsOfNames(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	s.write("etc/nsswitch.conf", "hosts: files\n")
	s.write("etc/hosts", "127.0.0.1 localhost\n10.0.0.5 nas\n"+apiLine+"10.0.0.7 k8s.example.com\n")
	s.write("etc/kubernetes/kubelet.conf", "clusters:\n- cluster:\n    server: https://k8s.example.com:8443\n  name: x\n")
	s.write("etc/kubernetes/admin.conf", "clusters:\n- cluster:\n    server: https://api-0123ab.lab.kgpu.internal:6443\n  name: x\n")
	s.stub("kubectl", "#!/bin/sh\nexit 1\n")
	h := s.factsBy(factsOf())
	is := func(name, want string) bool {
		return slices.Equal(h.Names[name], []netip.Addr{netip.MustParseAddr(want)})
	}
	if len(h.Names) != 2 || !is(apiName, "10.0.0.10") || !is("k8s.example.com", "10.0.0.7") || h.ControlPlane.Endpoint != "api-0123ab.lab.kgpu.internal:6443" {
		t.Errorf("%v, %q", h.Names, h.ControlPlane.Endpoint)
	}
}

// The facts tell the name servers of each file that may have them; of a file that is not there, none.
func TestFactsOfResolvers(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	s.write("run/systemd/resolve/resolv.conf", "# nameserver 10.0.0.9\nsearch lan\nnameserver 10.0.0.1\n nameserver 10.0.0.2 # x")
	h := s.factsBy(factsOf())
	if own, ok := h.Resolvers["/etc/resolv.conf"]; !ok || len(own) > 0 || len(h.Resolvers) != 2 {
		t.Errorf("%v", h.Resolvers)
	}
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}; !slices.Equal(h.Resolvers[facts.SystemdResolvConf], want) {
		t.Errorf("%v", h.Resolvers)
	}
}
