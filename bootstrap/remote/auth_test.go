package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// startAgent runs an SSH agent that holds keys, the comment of each being its place in the list.
func startAgent(t *testing.T, keys ...agent.AddedKey) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // t.TempDir may be too long for a socket
	must(t, err)
	ring := agent.NewKeyring()
	for _, k := range keys {
		must(t, ring.Add(k))
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_ = agent.ServeAgent(ring, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
		os.RemoveAll(dir)
	})
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(dir, "s"))
}

func agentKeys(keys ...sshtest.Key) []agent.AddedKey {
	var out []agent.AddedKey
	for _, k := range keys {
		out = append(out, agent.AddedKey{PrivateKey: k.Private, Comment: ssh.FingerprintSHA256(k.PublicKey())})
	}
	return out
}

func strangers(n int) []sshtest.Key {
	var out []sshtest.Key
	for range n {
		out = append(out, sshtest.NewKey())
	}
	return out
}

func publicLine(k ssh.PublicKey) []byte { return ssh.MarshalAuthorizedKey(k) }

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, data, 0o600))
}

func secretOf(t *testing.T, ref string) inventory.Secret {
	t.Helper()
	s, err := inventory.ParseSecret(ref)
	must(t, err)
	return s
}

// Every way to log in. prepare returns how the inventory describes the login; the server knows key and authority.
func TestLogin(t *testing.T) {
	key, authority := sshtest.NewKey(), sshtest.NewKey()
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, dir string) inventory.SSH
	}{
		{"key", func(t *testing.T, dir string) inventory.SSH {
			key.Write(t, dir+"/id")
			return inventory.SSH{Key: dir + "/id"}
		}},
		{"key in the home directory", func(t *testing.T, dir string) inventory.SSH {
			t.Setenv("HOME", dir)
			key.Write(t, dir+"/id")
			return inventory.SSH{Key: "~/id"}
		}},
		{"encrypted key", func(t *testing.T, dir string) inventory.SSH {
			writeEncrypted(t, key, dir+"/id", "swordfish")
			return inventory.SSH{Key: dir + "/id", Passphrase: secretOf(t, "${PASSPHRASE}")}
		}},
		{"usual key", func(t *testing.T, dir string) inventory.SSH {
			t.Setenv("HOME", dir)
			must(t, os.Mkdir(dir+"/.ssh", 0o700))
			sshtest.NewKey().Write(t, dir+"/.ssh/id_ed25519")
			key.Write(t, dir+"/.ssh/id_rsa")
			return inventory.SSH{}
		}},
		{"agent", func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(sshtest.NewKey(), key)...)
			return inventory.SSH{Agent: true}
		}},
		{"agent has the encrypted key among many", func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(append(strangers(10), key)...)...)
			writeEncrypted(t, key, dir+"/id", "swordfish")
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}},
		{"agent has the private half of a public key", func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(append(strangers(10), key)...)...)
			writeFile(t, dir+"/id.pub", publicLine(key.PublicKey()))
			return inventory.SSH{Key: dir + "/id.pub", Agent: true}
		}},
		{"key while the agent has many others", func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(strangers(10)...)...)
			key.Write(t, dir+"/id")
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}},
		{"usual key while the agent has many others", func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(strangers(10)...)...)
			t.Setenv("HOME", dir)
			must(t, os.Mkdir(dir+"/.ssh", 0o700))
			key.Write(t, dir+"/.ssh/id_ed25519")
			return inventory.SSH{Agent: true}
		}},
		{"certificate", func(t *testing.T, dir string) inventory.SSH {
			own := sshtest.NewKey()
			own.Write(t, dir+"/id")
			writeFile(t, dir+"/id-cert.pub", publicLine(certify(t, authority, own.PublicKey(), ssh.UserCert, "root")))
			return inventory.SSH{Key: dir + "/id"}
		}},
		{"certificate for a key in the agent", func(t *testing.T, dir string) inventory.SSH {
			own := sshtest.NewKey()
			startAgent(t, agentKeys(append(strangers(10), own)...)...)
			writeEncrypted(t, own, dir+"/id", "swordfish")
			writeFile(t, dir+"/id-cert.pub", publicLine(certify(t, authority, own.PublicKey(), ssh.UserCert, "root")))
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}},
		{"certificate in the agent", func(t *testing.T, dir string) inventory.SSH {
			own := sshtest.NewKey()
			keys := agentKeys(append(strangers(10), own)...)
			keys = append(keys, agent.AddedKey{PrivateKey: own.Private, Certificate: certify(t, authority, own.PublicKey(), ssh.UserCert, "root")})
			startAgent(t, keys...)
			own.Write(t, dir+"/id")
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}},
		{"agent that is gone", func(t *testing.T, dir string) inventory.SSH {
			t.Setenv("SSH_AUTH_SOCK", dir+"/nothing")
			key.Write(t, dir+"/id")
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := sshtest.Listen(t, sshtest.Config{
				Authorized: []ssh.PublicKey{key.PublicKey()}, Authority: authority.PublicKey(), MaxTries: maxKeys,
			})
			in := server.Host()
			s := tc.prepare(t, t.TempDir())
			s.User, s.Port, s.HostKey = "root", in.SSH.Port, in.SSH.HostKey
			in.SSH = s
			d, _ := newDialer(t, Options{Secret: func(s inventory.Secret) (string, error) {
				if s.String() != "${PASSPHRASE}" {
					t.Errorf("asked for %s", s)
				}
				return "swordfish", nil
			}})
			dialWith(t, d, in)
		})
	}
}

func TestLoginFails(t *testing.T) {
	for _, tc := range []struct {
		name    string
		config  sshtest.Config
		prepare func(t *testing.T, dir string) inventory.SSH
		want    []string
	}{
		{"key is refused", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			k := sshtest.NewKey()
			k.Write(t, dir+"/id")
			return inventory.SSH{Key: dir + "/id"}
		}, []string{"the server took none of the keys: ", "/id (ssh-ed25519 SHA256:", "): refused"}},
		{"key is missing", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			return inventory.SSH{Key: dir + "/id"}
		}, []string{"there is no key to log in with: ", "/id: no such file or directory"}},
		{"no passphrase", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			writeEncrypted(t, sshtest.NewKey(), dir+"/id", "swordfish")
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}, []string{"there is no key", "/id: it is encrypted, and no `passphrase:`", "agent: SSH_AUTH_SOCK is not set"}},
		{"wrong passphrase", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			writeEncrypted(t, sshtest.NewKey(), dir+"/id", "trout")
			return inventory.SSH{Key: dir + "/id", Passphrase: secretOf(t, "${PASSPHRASE}")}
		}, []string{"/id: the passphrase from ${PASSPHRASE} is wrong"}},
		{"not a key", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			writeFile(t, dir+"/id", []byte("hello\n"))
			return inventory.SSH{Key: dir + "/id"}
		}, []string{"/id: no key found"}},
		{"certificate of another key", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			sshtest.NewKey().Write(t, dir+"/id")
			writeFile(t, dir+"/id-cert.pub", publicLine(certify(t, sshtest.NewKey(), sshtest.NewKey().PublicKey(), ssh.UserCert, "root")))
			return inventory.SSH{Key: dir + "/id"}
		}, []string{"is for another key", "/id (ssh-ed25519 SHA256:"}},
		{"certificate is refused", sshtest.Config{}, func(t *testing.T, dir string) inventory.SSH {
			k := sshtest.NewKey()
			k.Write(t, dir+"/id")
			cert := certify(t, sshtest.NewKey(), k.PublicKey(), ssh.UserCert, "root")
			cert.ValidBefore = 1
			writeFile(t, dir+"/id-cert.pub", publicLine(cert))
			return inventory.SSH{Key: dir + "/id"}
		}, []string{"(certificate of ssh-ed25519 SHA256:", ", expired): refused", "/id (ssh-ed25519 SHA256:"}},
		{"too many keys in the agent", sshtest.Config{MaxTries: maxKeys}, func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(strangers(9)...)...)
			return inventory.SSH{Agent: true}
		}, []string{"agent key SHA256:", "): refused", "4 more keys in the agent: not offered"}},
		{"too many keys, a certificate among them", sshtest.Config{MaxTries: maxKeys}, func(t *testing.T, dir string) inventory.SSH {
			startAgent(t, agentKeys(strangers(9)...)...)
			k := sshtest.NewKey()
			k.Write(t, dir+"/id")
			writeFile(t, dir+"/id-cert.pub", publicLine(certify(t, sshtest.NewKey(), k.PublicKey(), ssh.UserCert, "root")))
			return inventory.SSH{Key: dir + "/id", Agent: true}
		}, []string{"5 more keys in the agent: not offered"}},
		{"the server explains itself", sshtest.Config{Banner: "Welcome\n\x1b[31mSystem is booting up.\n"}, func(t *testing.T, dir string) inventory.SSH {
			sshtest.NewKey().Write(t, dir+"/id")
			return inventory.SSH{Key: dir + "/id"}
		}, []string{`(it says "System is booting up.")`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := sshtest.Listen(t, tc.config)
			in := server.Host()
			s := tc.prepare(t, t.TempDir())
			s.User, s.Port, s.HostKey = "ubuntu", in.SSH.Port, in.SSH.HostKey
			in.SSH = s
			d, events := newDialer(t, Options{Secret: func(inventory.Secret) (string, error) { return "swordfish", nil }})
			_, err := d.Dial(context.Background(), in)
			var e *reason.Error
			if !errors.As(err, &e) || e.ID != reason.SSHAuthFailed || e.Doing != "connecting to ubuntu@"+server.Addr() {
				t.Fatalf("%#v", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(e.Detail, w) {
					t.Errorf("%q is missing in %q", w, e.Detail)
				}
			}
			if strings.Contains(err.Error(), "swordfish") {
				t.Error("the passphrase is in the error")
			}
			if n := len(events.Events()); n != 0 {
				t.Errorf("%d events", n)
			}
		})
	}
}

func TestSecretThatCannotBeResolved(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	missing := &reason.Error{ID: reason.SecretMissing, Detail: "PASSPHRASE is not set"}
	for name, resolve := range map[string]func(inventory.Secret) (string, error){
		"unset": func(inventory.Secret) (string, error) { return "", missing },
		"none":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newDialer(t, Options{Secret: resolve})
			encrypted := server.Host()
			encrypted.SSH.Key = filepath.Join(t.TempDir(), "id")
			writeEncrypted(t, server.ClientKey(), encrypted.SSH.Key, "swordfish")
			encrypted.SSH.Passphrase = secretOf(t, "${PASSPHRASE}")
			sudo := server.Host()
			sudo.SSH.User, sudo.SSH.SudoPassword = "ubuntu", secretOf(t, "${PASSPHRASE}")
			for _, in := range []inventory.Host{encrypted, sudo} {
				_, err := d.Dial(context.Background(), in)
				if e := wantReason(t, err, reason.SecretMissing); e.Host != "127.0.0.1" {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// Who types a passphrase may take longer than a host may take to answer.
func TestPassphraseTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server := newMemNet(), sshtest.New(sshtest.Config{})
		d := n.dialer(t, Options{Secret: func(inventory.Secret) (string, error) {
			time.Sleep(4 * DefaultConnectTimeout)
			return "swordfish", nil
		}})
		in := n.host(t, "10.0.0.2:22", server)
		writeEncrypted(t, server.ClientKey(), in.SSH.Key, "swordfish")
		in.SSH.Passphrase = secretOf(t, "${PASSPHRASE}")
		if _, err := d.Dial(t.Context(), in); err != nil {
			t.Error(err)
		}
	})
}

// A hundred hosts with one key ask for its passphrase once.
func TestPassphraseIsAskedForOnce(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	in := server.Host()
	in.SSH.Key = filepath.Join(t.TempDir(), "id")
	writeEncrypted(t, server.ClientKey(), in.SSH.Key, "swordfish")
	in.SSH.Passphrase = secretOf(t, "${PASSPHRASE}")
	asked := make(chan struct{}, 10)
	d, _ := newDialer(t, Options{Secret: func(inventory.Secret) (string, error) {
		asked <- struct{}{}
		return "swordfish", nil
	}})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := d.Dial(context.Background(), in); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
