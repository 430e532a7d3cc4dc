package remote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

func TestHostKeys(t *testing.T) {
	own, other := sshtest.NewKey(), sshtest.NewKey()
	second := newECDSAKey(t)
	ownSum, otherSum := ssh.FingerprintSHA256(own.PublicKey()), ssh.FingerprintSHA256(other.PublicKey())
	line := func(address string, k ssh.PublicKey) string { return knownhosts.Line([]string{address}, k) + "\n" }
	for _, tc := range []struct {
		name   string
		known  func(address string) string // the known_hosts file; nil: none
		pinned ssh.PublicKey
		policy inventory.HostKeyPolicy
		keys   []ssh.Signer // of the server; default: own

		want   reason.ID
		detail []string
		advice []string
		after  func(address string) string // the file in the end; nil: unchanged
	}{
		{name: "known", known: func(a string) string { return line(a, own.PublicKey()) }},
		{name: "known by a hashed name", known: func(a string) string {
			return line("other.example", other.PublicKey()) + knownhosts.HashHostname(knownhosts.Normalize(a)) + " " + string(publicLine(own.PublicKey()))
		}},
		{name: "known by its second key", keys: []ssh.Signer{own, second}, known: func(a string) string { return line(a, second.PublicKey()) }},
		{name: "known with several keys", keys: []ssh.Signer{own, second}, known: func(a string) string {
			return line(a, own.PublicKey()) + line(a, second.PublicKey())
		}},
		{name: "unknown", want: reason.SSHHostKeyUnknown, known: func(string) string { return "# nothing\n" },
			detail: []string{ownSum, "no line for [127.0.0.1]:"},
			advice: []string{"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", `hostKey: "ssh-ed25519 AAAA`, "hostKeyPolicy: accept-new"}},
		{name: "unknown, no file", want: reason.SSHHostKeyUnknown, detail: []string{ownSum}},
		{name: "unknown on this port", want: reason.SSHHostKeyUnknown, known: func(string) string { return line("127.0.0.1:22", own.PublicKey()) }},
		{name: "changed", want: reason.SSHHostKeyMismatch, known: func(a string) string { return "\n" + line(a, other.PublicKey()) },
			detail: []string{"the server has the host key ssh-ed25519 " + ownSum, "known is ssh-ed25519 " + otherSum, "known_hosts:2)"},
			advice: []string{"ssh-keygen -R", "somebody may be in between"}},
		{name: "changed to a key of another type", want: reason.SSHHostKeyMismatch, keys: []ssh.Signer{second},
			known:  func(a string) string { return line(a, own.PublicKey()) },
			detail: []string{"ecdsa-sha2-nistp256 SHA256:", ownSum}, advice: []string{"ssh_host_ecdsa_key.pub"}},
		{name: "revoked", want: reason.SSHHostKeyMismatch, known: func(a string) string {
			return line(a, own.PublicKey()) + "@revoked * " + string(publicLine(own.PublicKey()))
		}, detail: []string{ownSum, "known_hosts:2 revokes this key"}},
		{name: "file that cannot be read", want: reason.SSHHostKeyUnknown, known: func(a string) string { return "what is this\n" }, detail: []string{}},

		{name: "pinned", pinned: own.PublicKey()},
		{name: "pinned second key", keys: []ssh.Signer{own, second}, pinned: second.PublicKey()},
		{name: "pinned, and known with another key", pinned: own.PublicKey(), known: func(a string) string { return line(a, other.PublicKey()) }},
		{name: "pinned another", want: reason.SSHHostKeyMismatch, pinned: other.PublicKey(), policy: inventory.AcceptNew,
			known:  func(a string) string { return line(a, own.PublicKey()) },
			detail: []string{ownSum, "the inventory pins ssh-ed25519 " + otherSum}},

		{name: "new, accepted", policy: inventory.AcceptNew, after: func(a string) string { return line(a, own.PublicKey()) }},
		{name: "new with several keys, accepted", policy: inventory.AcceptNew, keys: []ssh.Signer{second, own}, after: func(a string) string { return line(a, own.PublicKey()) }},
		{name: "new, accepted, known already", policy: inventory.AcceptNew, known: func(a string) string { return line(a, own.PublicKey()) }},
		{name: "new, accepted, in a file without a last line end", policy: inventory.AcceptNew,
			known: func(a string) string { return "# mine" }, after: func(a string) string { return "# mine\n" + line(a, own.PublicKey()) }},
		{name: "new, accepted, but changed", policy: inventory.AcceptNew, want: reason.SSHHostKeyMismatch,
			known: func(a string) string { return line(a, other.PublicKey()) }, detail: []string{ownSum, otherSum}},
		{name: "new, accepted, but revoked", policy: inventory.AcceptNew, want: reason.SSHHostKeyMismatch,
			known: func(a string) string { return "@revoked * " + string(publicLine(own.PublicKey())) }, detail: []string{ownSum}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			keys := tc.keys
			if keys == nil {
				keys = []ssh.Signer{own}
			}
			server := sshtest.Listen(t, sshtest.Config{HostKeys: keys})
			in := server.Host()
			path := filepath.Join(t.TempDir(), "ssh", "known_hosts")
			in.SSH.HostKey, in.SSH.KnownHosts, in.SSH.HostKeyPolicy = "", path, tc.policy
			if tc.pinned != nil {
				in.SSH.HostKey = string(publicLine(tc.pinned))
			}
			before := ""
			if tc.known != nil {
				before = tc.known(server.Addr())
				writeFile(t, path, []byte(before))
			}
			// The same rules hold for a bastion.
			final := sshtest.Listen(t, sshtest.Config{}).Host()
			for name, h := range map[string]inventory.Host{"host": in, "bastion": sshtest.Behind(final, in)} {
				d, _ := newDialer(t, Options{})
				_, err := d.Dial(context.Background(), h)
				var e *reason.Error
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("%s: %v", name, err)
				case tc.want != "" && (!errors.As(err, &e) || e.ID != tc.want || e.Doing != "connecting to root@"+server.Addr()):
					t.Errorf("%s: %v, want %s", name, err, tc.want)
				case tc.want != "":
					for _, w := range tc.detail {
						if !strings.Contains(e.Error(), w) {
							t.Errorf("%s: %q is missing in %q", name, w, e.Error())
						}
					}
					for _, w := range tc.advice {
						if !strings.Contains(e.AdviceLine(), w) {
							t.Errorf("%s: %q is missing in the advice %q", name, w, e.AdviceLine())
						}
					}
				}
			}
			data, err := os.ReadFile(path)
			want := before
			if tc.after != nil {
				want = tc.after(server.Addr())
				if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
					t.Errorf("the file has the mode %o", info.Mode().Perm())
				}
			}
			if string(data) != want || want == "" && err == nil {
				t.Errorf("the file became %q, want %q", data, want)
			}
		})
	}
}

// A server is asked for a key that is known first, whatever its type, and then as ssh asks.
func TestPreferred(t *testing.T) {
	const rest = "ssh-ed25519 ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 ecdsa-sha2-nistp521 rsa-sha2-512 rsa-sha2-256"
	for known, want := range map[string]string{
		"":                                  rest,
		"rsa-sha2-512 rsa-sha2-256 ssh-rsa": "rsa-sha2-512 rsa-sha2-256 ssh-ed25519 ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 ecdsa-sha2-nistp521",
	} {
		if got := strings.Join(preferred(strings.Fields(known)), " "); !strings.HasPrefix(got, want) || strings.Contains(got, "ssh-rsa") || strings.Contains(got, "-cert-") {
			t.Errorf("known %q: asks for %s, want %s", known, got, want)
		}
	}
}

func TestAcceptNewHashesLikeTheFile(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	in := server.Host()
	path := filepath.Join(t.TempDir(), "known_hosts")
	in.SSH.HostKey, in.SSH.KnownHosts, in.SSH.HostKeyPolicy = "", path, inventory.AcceptNew
	first := knownhosts.HashHostname("gpu.example") + " " + string(publicLine(sshtest.NewKey().PublicKey()))
	writeFile(t, path, []byte(first))
	dial(t, in)
	data, err := os.ReadFile(path)
	must(t, err)
	added, ok := strings.CutPrefix(string(data), first)
	if !ok || !strings.HasPrefix(added, "|1|") || strings.Contains(added, "127.0.0.1") || strings.Count(added, "\n") != 1 {
		t.Errorf("added: %q", added)
	}
	in.SSH.HostKeyPolicy = inventory.Strict
	dial(t, in)
}

// Who can be asked is asked once about each key that nobody knows, one question at a time, and the right ones are added to known_hosts.
func TestTrust(t *testing.T) {
	for _, yes := range []bool{true, false} {
		servers := []*sshtest.Server{sshtest.Listen(t, sshtest.Config{}), sshtest.Listen(t, sshtest.Config{}), sshtest.Listen(t, sshtest.Config{})}
		path := filepath.Join(t.TempDir(), "known_hosts")
		var asked []string
		var asking sync.Mutex
		d := NewDialer(Options{Trust: func(k *UnknownKeyError) bool {
			if !asking.TryLock() {
				t.Error("two questions at the same time")
				return false
			}
			defer asking.Unlock()
			asked = append(asked, k.SHA256()+" "+k.KnownHosts)
			return yes
		}})
		defer d.Close()
		var wg sync.WaitGroup
		for _, s := range servers[1:] { // both behind the first
			for range 2 {
				wg.Go(func() {
					in := sshtest.Behind(s.Host(), servers[0].Host())
					in.SSH.HostKey, in.SSH.KnownHosts, in.SSH.Bastion.SSH.HostKey, in.SSH.Bastion.SSH.KnownHosts = "", path, "", path
					_, err := d.Dial(t.Context(), in)
					if (err == nil) != yes || !yes && !errors.Is(err, &reason.Error{ID: reason.SSHHostKeyUnknown}) {
						t.Errorf("%t: %v", yes, err)
					}
				})
			}
		}
		wg.Wait()
		want := len(servers)
		if !yes {
			want = 1 // behind a bastion that is not trusted nobody is met
		}
		if len(asked) != want || asked[0] != ssh.FingerprintSHA256(servers[0].HostKey())+" "+path {
			t.Errorf("%t: asked for %q", yes, asked)
		}
		data, err := os.ReadFile(path)
		if yes && (err != nil || strings.Count(string(data), "\n") != 3) || !yes && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%t: %q, %v", yes, data, err)
		}
	}
}

// Many who meet the same new hosts at once add each host once, and never half a line.
func TestAcceptNewTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known_hosts")
	var wg sync.WaitGroup
	for range 4 {
		server := sshtest.Listen(t, sshtest.Config{})
		for range 6 {
			d, _ := newDialer(t, Options{})
			in := server.Host()
			in.SSH.HostKey, in.SSH.KnownHosts, in.SSH.HostKeyPolicy = "", path, inventory.AcceptNew
			wg.Go(func() {
				if _, err := d.Dial(context.Background(), in); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	must(t, err)
	if n := strings.Count(string(data), "\n"); n != 4 {
		t.Errorf("%d lines:\n%s", n, data)
	}
}

func TestHostCertificate(t *testing.T) {
	authority, key := sshtest.NewKey(), sshtest.NewKey()
	cert := certify(t, authority, key.PublicKey(), ssh.HostCert, "127.0.0.1")
	signer, err := ssh.NewCertSigner(cert, key)
	must(t, err)
	server := sshtest.Listen(t, sshtest.Config{HostKeys: []ssh.Signer{signer, key}})
	in := server.Host()
	path := filepath.Join(t.TempDir(), "known_hosts")
	in.SSH.HostKey, in.SSH.KnownHosts = "", path
	writeFile(t, path, []byte("@cert-authority 127.0.0.* "+string(publicLine(authority.PublicKey()))))
	h := dial(t, in)
	h.Close()
	if err := h.Reconnect(context.Background()); err != nil {
		t.Error(err)
	}
	// Without the authority the bare key counts.
	writeFile(t, path, []byte(knownhosts.Line([]string{server.Addr()}, key.PublicKey())+"\n"))
	dial(t, in)
	writeFile(t, path, []byte("@cert-authority * "+string(publicLine(sshtest.NewKey().PublicKey()))))
	d, _ := newDialer(t, Options{})
	if _, err := d.Dial(context.Background(), in); !errors.Is(err, &reason.Error{ID: reason.SSHHostKeyMismatch}) && !errors.Is(err, &reason.Error{ID: reason.SSHHostKeyUnknown}) {
		t.Errorf("a stranger's certificate: %v", err)
	}
}

// What an inventory names is no file of known hosts only because it does so: kgpu makes none with another name, and writes no
// line that lets somebody log in where it stands in authorized_keys.
func TestAcceptNewMakesOnlyKnownHosts(t *testing.T) {
	key := sshtest.NewKey().PublicKey()
	for name, made := range map[string]bool{
		"known_hosts": true, "lab.known_hosts": true, "known_hosts-lab": true, "KnownHosts": true,
		"authorized_keys": false, ".bashrc": false, "link": false, "known_hosts.link": false,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "ssh", name)
		if strings.HasSuffix(name, "link") {
			path = filepath.Join(dir, name)
			must(t, os.Symlink(filepath.Join(dir, "authorized_keys"), path))
		}
		err := addKnownHost(path, "10.0.0.10:22", key)
		_, missing := os.Stat(path)
		if made != (err == nil) || made != (missing == nil) {
			t.Errorf("%s: %v, %v", name, err, missing)
		}
	}
}

// The options of authorized_keys that have no value, in sshd(8) of OpenSSH 10.
func TestNoHostIsAnOptionOfAuthorizedKeys(t *testing.T) {
	key := sshtest.NewKey().PublicKey()
	for _, option := range strings.Fields("agent-forwarding cert-authority no-agent-forwarding no-port-forwarding no-pty no-user-rc " +
		"no-touch-required no-X11-forwarding port-forwarding pty restrict touch-required user-rc verify-required X11-forwarding") {
		path := filepath.Join(t.TempDir(), "authorized_keys")
		writeFile(t, path, nil)
		must(t, addKnownHost(path, option+":22", key))
		data, err := os.ReadFile(path)
		must(t, err)
		if first, _, _ := strings.Cut(string(data), " "); strings.EqualFold(first, option) {
			t.Errorf("%s lets the host's key log in", data)
		}
		known, err := readKnownHosts([]string{path})
		if err != nil || len(known.HostKeys(option+":22")) != 1 {
			t.Errorf("%s is not known: %v", option, err)
		}
	}
}
