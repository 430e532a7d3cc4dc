package remote

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/inventory"
)

// target is one SSH server and the way to it, with ssh_config and the defaults applied.
type target struct {
	user string
	host string // IP address or DNS name
	port int

	keys       []string // paths of private keys the user named; none: the usual ones
	passphrase inventory.Secret
	agent      bool

	knownHosts []string // paths; the first is where accept-new writes
	policy     inventory.HostKeyPolicy
	pinned     string // the host key, as in authorized_keys; wins over knownHosts

	via     *target
	bastion bool // it is on the way to another
}

// resolve finds out where h is and how to get there.
func (d *Dialer) resolve(h inventory.Host) (*target, error) {
	config, err := d.config()
	if err != nil {
		return nil, err
	}
	return config.target(h.Address, h.SSH)
}

func (t *target) address() string { return net.JoinHostPort(t.host, strconv.Itoa(t.port)) }

// String is user@host:port with the bastions on the way.
func (t *target) String() string {
	s := t.user + "@" + t.address()
	if t.via != nil {
		s += " through " + t.via.String()
	}
	return s
}

// key tells targets apart that must not share a connection.
func (t *target) key() string {
	var b strings.Builder
	for ; t != nil; t = t.via {
		fmt.Fprintf(&b, "%q %q %d %q %q %t %q %q %q;", t.user, t.host, t.port, t.keys, t.passphrase, t.agent, t.knownHosts, t.policy, t.pinned)
	}
	return b.String()
}

// expandHome replaces a leading ~/ by the home directory.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}
