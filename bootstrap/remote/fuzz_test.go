package remote

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"kgpu.dev/kgpu/inventory"

	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// FuzzSSHConfig: a user's ssh_config is understood or refused, and leads to an end. It has files of its own to include.
func FuzzSSHConfig(f *testing.F) {
	f.Setenv("HOME", "/home/op")
	f.Add([]byte("Host *\n  User me\n  Port 22\nHost a\n  ProxyJump b,c:22,ssh://d@[::1]:5\n  IdentityFile %d/%h\n"))
	f.Add([]byte("Host a\n  ProxyJump a\n"))
	f.Add([]byte("Match all\nPort x\nInclude /dev/null\n"))
	f.Add([]byte("Host \"a\" !b*\nInclude=config conf.d/* /dev/*ull\nMatch host a,b?c\nUser \"x y\" # z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		machine := fstest.MapFS{
			"home/op/.ssh/config":     {Data: data},
			"home/op/.ssh/conf.d/one": {Data: data},
			"home/op/.ssh/conf.d/two": {Data: []byte("Host b\nUser two\n")},
			"dev/full":                {Mode: fs.ModeDevice | fs.ModeCharDevice},
		}
		c, err := loadConfig(machine, "/home/op/.ssh/config")
		if err != nil {
			return
		}
		for _, host := range []string{"a", "10.0.0.1", "b.example.com"} {
			to, err := c.target(host, inventory.SSH{}, 0)
			if (to == nil) == (err == nil) && err == nil || err == nil && (to.port < 1 || to.port > 65535 || to.user == "") {
				t.Errorf("%+v, %v", to, err)
			}
		}
	})
}

// FuzzKnownHosts: a file that cannot be read lets nobody in.
func FuzzKnownHosts(f *testing.F) {
	key := sshtest.NewKey().PublicKey()
	f.Add([]byte("* " + string(publicLine(sshtest.NewKey().PublicKey()))))
	f.Add([]byte("@cert-authority *.example " + string(publicLine(key)) + "@revoked * x\n|1|a|b ssh-ed25519 AAAA\n"))
	path := filepath.Join(f.TempDir(), "known_hosts")
	f.Fuzz(func(t *testing.T, data []byte) {
		must(t, os.WriteFile(path, data, 0o600))
		h, unfit := newHostKeys(&target{host: "10.0.0.1", port: 22, knownHosts: []string{path}, policy: inventory.Strict}, nil)
		if unfit != nil {
			return
		}
		if err := h.check("10.0.0.1:22", tunnelAddr("10.0.0.1:22"), sshtest.NewKey().PublicKey()); err == nil {
			t.Errorf("a new key is known by %q", data)
		}
	})
}
