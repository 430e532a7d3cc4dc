package remote

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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
	return config.target(h.Address, h.SSH, 0)
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

// Hop is one SSH server on the way to a host, as another SSH client has to be told about it.
type Hop struct {
	User       string
	Host       string // IP address or DNS name
	Port       int
	Keys       []string // paths of private keys that the user named; none: the usual ones
	Agent      bool     // the agent may be asked
	KnownHosts []string // paths
	Policy     inventory.HostKeyPolicy
	HostKey    string // pinned, as in authorized_keys; wins over KnownHosts; empty: none
}

// Route is the way to a host that Dial takes, bastions first, the host itself last. Nothing is connected.
func (d *Dialer) Route(h inventory.Host) ([]Hop, error) {
	t, err := d.resolve(h)
	if err != nil {
		return nil, inHost(err, h.ID())
	}
	var hops []Hop
	for ; t != nil; t = t.via {
		hops = append(hops, Hop{
			User: t.user, Host: t.host, Port: t.port, Keys: t.keys, Agent: t.agent, KnownHosts: t.knownHosts, Policy: t.policy, HostKey: t.pinned,
		})
	}
	slices.Reverse(hops)
	return hops, nil
}
