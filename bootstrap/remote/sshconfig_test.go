package remote

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

func TestResolve(t *testing.T) {
	t.Setenv("HOME", "/home/op")
	const config = `
# a shelf of GPU machines
Host gpu*
	HostName %h.lab.example
	User=ubuntu
	Port 2222
	IdentityFile "~/.ssh/lab key"
	IdentityFile %d/keys/%r@%h
	UserKnownHostsFile ~/.ssh/lab_hosts /etc/lab_hosts
	ProxyJump jump
Host jump
	HostName jump.example
	User hop
	ProxyJump me@outer:2200
Host direct
	ProxyJump none
Host chain
	ProxyJump one,ssh://[2001:db8::1]:22
Host round
	ProxyJump round
Host odd
	Port ssh
Host *
	User op
`
	for _, tc := range []struct {
		alias string
		ssh   inventory.SSH
		want  string
		keys  []string
		known []string
		fails string
	}{
		{alias: "gpu7", want: "ubuntu@gpu7.lab.example:2222 through hop@jump.example:22 through me@outer:2200",
			keys: []string{"/home/op/.ssh/lab key", "/home/op/keys/ubuntu@gpu7.lab.example"}, known: []string{"/home/op/.ssh/lab_hosts", "/etc/lab_hosts"}},
		{alias: "gpu7", ssh: inventory.SSH{User: "root", Port: 22, Key: "~/id", KnownHosts: "~/known", Bastion: &inventory.Bastion{Address: "direct"}},
			want: "root@gpu7.lab.example:22 through op@direct:22", keys: []string{"/home/op/id"}, known: []string{"/home/op/known"}},
		{alias: "GPU7", ssh: inventory.SSH{Bastion: &inventory.Bastion{Address: "direct"}}, want: "op@gpu7:22 through op@direct:22"}, // as in known_hosts
		{alias: "direct", want: "op@direct:22", known: []string{"/home/op/.ssh/known_hosts"}},
		{alias: "chain", want: "op@chain:22 through op@[2001:db8::1]:22 through op@one:22"},
		{alias: "round", fails: "jumps on the way"},
		{alias: "odd", fails: `"ssh" is not a port`},
	} {
		t.Run(tc.alias, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			writeFile(t, path, []byte(config))
			d, _ := newDialer(t, Options{SSHConfig: path})
			got, err := d.resolve(inventory.Host{Address: tc.alias, SSH: tc.ssh})
			if tc.fails != "" {
				if e := wantReason(t, err, reason.InventoryInvalid); !strings.Contains(e.Error(), tc.fails) || !strings.Contains(e.Doing, path) {
					t.Errorf("%v, want %q", err, tc.fails)
				}
				return
			}
			must(t, err)
			if got.String() != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if tc.keys != nil && !slices.Equal(got.keys, tc.keys) {
				t.Errorf("keys %q", got.keys)
			}
			if tc.known != nil && !slices.Equal(got.knownHosts, tc.known) {
				t.Errorf("known_hosts %q", got.knownHosts)
			}
			if got.policy != inventory.Strict {
				t.Errorf("policy %q", got.policy)
			}
		})
	}
}

func TestResolveWithoutConfig(t *testing.T) {
	d, _ := newDialer(t, Options{})
	got, err := d.resolve(inventory.Host{Address: "10.0.0.4"})
	if err != nil || got.String() != "root@10.0.0.4:22" || got.keys != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestConfigThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	for _, content := range []string{"", "Match exec true\n"} {
		if content != "" {
			writeFile(t, path, []byte(content))
		}
		d, _ := newDialer(t, Options{SSHConfig: path})
		_, err := d.Dial(context.Background(), inventory.Host{Address: "10.0.0.4"})
		if e := wantReason(t, err, reason.InventoryInvalid); e.Host != "10.0.0.4" {
			t.Errorf("%v", err)
		}
	}
}

// The address stands in the inventory as the user calls the machine; the rest comes from the ssh_config.
func TestDialByConfig(t *testing.T) {
	server, jump := sshtest.Listen(t, sshtest.Config{}), sshtest.Listen(t, sshtest.Config{})
	dir := t.TempDir()
	var config, known strings.Builder
	for name, s := range map[string]*sshtest.Server{"gpu": server, "jump": jump} {
		in := s.Host()
		fmt.Fprintf(&config, "Host %s\n\tHostName %s\n\tPort %d\n\tIdentityFile %s\n\tUserKnownHostsFile %s/known\n", name, in.Address, in.SSH.Port, in.SSH.Key, dir)
		fmt.Fprintf(&known, "[127.0.0.1]:%d %s\n", in.SSH.Port, in.SSH.HostKey)
	}
	config.WriteString("Host gpu\n\tProxyJump jump\n")
	writeFile(t, dir+"/config", []byte(config.String()))
	writeFile(t, dir+"/known", []byte(known.String()))
	d, _ := newDialer(t, Options{SSHConfig: dir + "/config"})
	dialWith(t, d, inventory.Host{Address: "gpu"})
	if jump.Accepted() != 1 {
		t.Error("the jump host was not used")
	}
}
