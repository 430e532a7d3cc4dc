package scripts

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A host's repository is at 8102, a proxy at 8101: who asks either of them is told no, and who was asked is in /tmp/asked.
const listeners = `
cat >/tmp/listen.py <<'PROGRAM'
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
while True:
    caller, _ = listener.accept()
    if caller.recv(9999):
        print(sys.argv[1], file=open("/tmp/asked", "a"), flush=True)
        caller.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    caller.close()
PROGRAM
python3 /tmp/listen.py proxy 8101 &
python3 /tmp/listen.py direct 8102 &
trap 'kill %1 %2' EXIT
for port in 8101 8102; do until : 2>/dev/null <>"/dev/tcp/127.0.0.1/$port"; do command sleep 0.05; done; done
asked() { rm -f /tmp/asked; ("$@") >/dev/null 2>&1 || true; sort -u /tmp/asked 2>/dev/null | paste -sd' '; }
`

// kgpu's own downloads take the proxy that apt takes, whatever words it is set with.
func TestProxyOfApt(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/ssl/certs/ca-certificates.crt", readFile(t, "/etc/ssl/certs/ca-certificates.crt")) // without, curl goes before it has an answer
	s.write("usr-local-proxy", "#!/bin/sh\necho http://127.0.0.1:8101\n")
	s.write("usr-local-direct", "#!/bin/sh\necho DIRECT\n")
	s.write("usr-local-silent", "#!/bin/sh\n")
	const set, https = `Acquire::http::Proxy "http://127.0.0.1:8101"; `, "https"
	var script strings.Builder
	script.WriteString(listeners + "chmod +x /usr-local-*\n")
	cases := []struct{ config, environment, scheme, want string }{
		{"", "", "http", "direct"},
		{set, "", "http", "proxy"},
		{set, "", https, "proxy"},
		{set + `Acquire::HTTPS::Proxy "false";`, "", https, "direct"},
		{set + `Acquire::https::Proxy "DIRECT";`, "", https, "direct"},
		{`Acquire::http::Proxy "none";`, "http_proxy=http://127.0.0.1:8101", "http", "direct"},
		{set + `Acquire::https::Proxy "";`, "", https, "proxy"},
		{`Acquire::https::Proxy "http://127.0.0.1:8101";`, "", "http", "direct"},
		{set + `Acquire::http::Proxy::127.0.0.1 "DIRECT";`, "", "http", "direct"},
		{set + `Acquire::http::Proxy::127.0.0.1 "DIRECT"; Acquire::https::Proxy "http://127.0.0.1:8101";`, "", https, "direct"},
		{set + `Acquire::http { Proxy { other.example "DIRECT"; }; };`, "", "http", "proxy"},
		{`Acquire::http::Proxy-Auto-Detect "/usr-local-proxy";`, "", "http", "proxy"},
		{`Acquire::http::Proxy-Auto-Detect "/usr-local-proxy";`, "", https, "direct"},
		{set + `Acquire::http::ProxyAutoDetect "/usr-local-direct";`, "", "http", "direct"},
		{set + `Acquire::http::Proxy-Auto-Detect "/usr-local-silent";`, "", "http", "proxy"},
		{"", "http_proxy=http://127.0.0.1:8101", "http", "proxy"},
		{"", "http_proxy=http://127.0.0.1:8101", https, "proxy"},
		{"", "https_proxy=http://127.0.0.1:8101", "http", "direct"},
		{"", "https_proxy=http://127.0.0.1:8101", https, "proxy"},
		{"", "HTTP_PROXY=http://127.0.0.1:8101 HTTPS_PROXY=http://127.0.0.1:8101 ALL_PROXY=http://127.0.0.1:8101", https, "direct"},
		{set, "no_proxy=example.org,.0.0.1", "http", "direct"},
		{set, "no_proxy=example.org,,\\ 127.0.0.1", "http", "proxy"},
		{set, "no_proxy=*", "http", "proxy"},
		{set, "NO_PROXY=127.0.0.1", "http", "proxy"},
		{`Acquire::http::Proxy::127.0.0.1 "http://127.0.0.1:8101";`, "no_proxy=127.0.0.1", https, "direct"},
	}
	for _, c := range cases {
		script.WriteString("cat >/etc/apt/apt.conf.d/proxy <<'SET'\n" + c.config + "\nSET\n(\n" +
			"if [[ -n '" + c.environment + "' ]]; then export " + c.environment + "; fi\n" +
			"url=" + c.scheme + "://127.0.0.1:8102/x\n" +
			`echo "$(asked /usr/lib/apt/apt-helper -o Acquire::Retries=0 download-file "$url" /tmp/x) $(asked fetch "$url" /tmp/x)"` + "\n)\n")
	}
	got := strings.Split(strings.TrimSpace(s.ok(s.script(script.String())).output), "\n")
	if len(got) != len(cases) {
		t.Fatalf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i, c := range cases {
		if got[i] != c.want+" "+c.want {
			t.Errorf("%s %s, %s: apt and kgpu asked %q, want %s", c.config, c.environment, c.scheme, got[i], c.want)
		}
	}
	s.write("etc/apt/apt.conf.d/proxy", `Acquire::http::Proxy "http://u:p@proxy:3128"; Acquire::https::Proxy "socks5h://[::1]:1080";`)
	s.prints("apt_proxy http://a.example/x; apt_proxy https://[fd00::1]:8443/x; apt_proxy file:///x",
		"http://u:p@proxy:3128\nsocks5h://[::1]:1080\n")
}

// What apt fetches by a proxy of the host's own is reached by it.
func TestReachByTheProxyOfApt(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "apt.conf")
	for proxy, want := range map[string]string{
		"http://u:p@127.0.0.1:8101/": "open", "http://127.0.0.1:9": "proxy-refused", "http://[::1]:9/": "proxy-refused", "http://no-such-host.invalid:3128": "proxy-unresolved", "false": "refused",
	} {
		must(t, os.WriteFile(config, []byte(`Acquire::http::Proxy "`+proxy+`";`), 0o644))
		out := inNamespace(t, "export http_proxy=http://192.0.2.1 APT_CONFIG="+config, "127.0.0.1 9 https\n127.0.0.1 8101\n")
		if !strings.Contains(out, "reach=127.0.0.1 9 "+want+"\n") || !strings.Contains(out, "reach=127.0.0.1 8101 open\n") {
			t.Errorf("%s: want %s in\n%s", proxy, want, out)
		}
	}
}

// Steps are units of systemd, and so is apt in them: a proxy of the login is none, one of systemd's environment is.
func TestReachByTheProxyOfUnits(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("systemctl", "#!/bin/sh\n[ \"$*\" != show-environment ] || cat /environment\n")
	s.write("tmp/asked", strings.Replace(string(Reach()), "PATH=", "PATH=/stubs:", 1)+"127.0.0.1 8102 http\n")
	for environment, want := range map[string]string{"LANG=C\nhttp_proxy=http://127.0.0.1:9\n": "proxy-refused", "LANG=C\n": "open", "http_proxy=http://127.0.0.1:9\nno_proxy=127.0.0.1\n": "open"} {
		s.write("environment", environment)
		if r := s.ok(s.script(listeners + "export http_proxy=http://127.0.0.1:10\nbash -s </tmp/asked")); !strings.Contains(r.output, "reach=127.0.0.1 8102 "+want+"\n") {
			t.Errorf("%q: want %s in\n%s", environment, want, r.output)
		}
	}
}

// A host has an address of IPv6 whose way leads nowhere, and the name has addresses of both families.
func TestReachPastADeadFamily(t *testing.T) {
	t.Parallel()
	hosts := filepath.Join(t.TempDir(), "hosts")
	must(t, os.WriteFile(hosts, []byte("2001:db8::9 repo.example dead.example\n127.0.0.1 repo.example\n2001:db8::9 refused.example\n127.0.0.1 refused.example\n"), 0o644))
	began := time.Now()
	world := `mount --bind ` + hosts + ` /etc/hosts
ip link add nowhere type veth peer name end && ip addr add 192.0.2.2/24 dev nowhere && ip addr add 2001:db8::2/64 dev nowhere nodad && ip link set nowhere up && ip link set end up
ip neigh add 2001:db8::9 lladdr 02:00:00:00:00:01 dev nowhere`
	if out := inNamespace(t, world, "repo.example 8101\n"); !strings.Contains(out, "reach=repo.example 8101 open\n") || time.Since(began) > 8*time.Second {
		t.Errorf("after %s:\n%s", time.Since(began), out)
	}
	if out := inNamespace(t, world, "dead.example 8101\nrefused.example 9\n"); !strings.Contains(out, "reach=dead.example 8101 silent\n") || !strings.Contains(out, "reach=refused.example 9 refused\n") {
		t.Errorf("\n%s", out)
	}
}

// An API server that just starts anew is waited for.
func TestReachAnAPIServerThatStarts(t *testing.T) {
	t.Parallel()
	later := `(sleep 3; perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 6443, Listen => 99) or die; alarm 40; close $s->accept while 1') &`
	out := inNamespace(t, later, "127.0.0.1 6443 awaited\n127.0.0.1 6444\n")
	if !strings.Contains(out, "reach=127.0.0.1 6443 open\n") || !strings.Contains(out, "reach=127.0.0.1 6444 refused\n") {
		t.Errorf("\n%s", out)
	}
}

// inNamespace runs reach.sh in a network of its own, which world prepares, and where something listens at port 8101.
func inNamespace(t *testing.T, world, endpoints string) string {
	t.Helper()
	cmd := exec.Command("unshare", "--mount", "--net", "bash", "-ec", "ip link set lo up\n"+world+`
perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8101, Listen => 99) or die; close $s->accept while 1' &
trap "kill $!" EXIT
until : 2>/dev/null <>/dev/tcp/127.0.0.1/8101; do sleep 0.05; done
bash -s`)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.MultiReader(bytes.NewReader(Reach()), strings.NewReader(endpoints)), &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return out.String()
}
