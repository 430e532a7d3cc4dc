package remote

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// What ssh itself uses: ssh_config(5).
const (
	defaultUser       = "root"
	defaultPort       = 22
	defaultKnownHosts = "~/.ssh/known_hosts"
)

// maxJumps ends a ProxyJump that leads in a circle.
const maxJumps = 8

// clientConfig is the user's ssh_config; its zero value says nothing.
type clientConfig struct {
	path     string
	settings []setting
}

// loadConfig reads a file of root, or none where path is empty. Paths of what it includes are of root, too.
func loadConfig(root fs.FS, path string) (*clientConfig, error) {
	c := &clientConfig{path: path}
	if path == "" {
		return c, nil
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, c.problem(err)
	}
	f, err := root.Open(strings.TrimPrefix(whole, "/"))
	if err != nil {
		return nil, c.problem(err)
	}
	defer f.Close()
	r := &configReader{root: root, home: expandHome("~/")}
	if err := r.read(f, path, nil, 0); err != nil {
		return nil, c.problem(err)
	}
	c.settings = r.settings
	return c, nil
}

func (c *clientConfig) problem(err error) error {
	return &reason.Error{
		ID: reason.InventoryInvalid, Doing: "reading the ssh_config " + c.path, Err: err,
		Advice: "correct that file; kgpu understands Host, HostName, Port, User, IdentityFile, ProxyJump, UserKnownHostsFile, Include and Match host",
	}
}

// get returns the first value of a keyword for the host that the user calls alias, or "".
func (c *clientConfig) get(alias, keyword string) string {
	if all := c.all(alias, keyword); len(all) > 0 {
		return all[0]
	}
	return ""
}

// all returns all values of a keyword for a host.
func (c *clientConfig) all(alias, keyword string) (values []string) {
	keyword = strings.ToLower(keyword)
	for _, s := range c.settings {
		if s.key == keyword && s.is(alias) {
			values = append(values, s.value)
		}
	}
	return values
}

// target applies the ssh_config and the defaults to what the inventory says about a server. depth is how many bastions it is
// away from the host that it is on the way to.
func (c *clientConfig) target(alias string, s inventory.SSH, depth int) (*target, error) {
	if depth > maxJumps {
		return nil, c.problem(fmt.Errorf("more than %d jumps on the way to %s", maxJumps, alias))
	}
	t := &target{
		user: s.User, host: alias, port: s.Port,
		passphrase: s.Passphrase, agent: s.Agent,
		policy: s.HostKeyPolicy, pinned: s.HostKey, bastion: depth > 0,
	}
	if name := c.get(alias, "HostName"); name != "" {
		t.host = strings.NewReplacer("%h", alias, "%%", "%").Replace(name)
	}
	t.host = strings.ToLower(t.host) // as ssh does, which writes such names into known_hosts
	t.user = cmp.Or(t.user, c.get(alias, "User"), defaultUser)
	if port := c.get(alias, "Port"); t.port == 0 && port != "" {
		var err error
		if t.port, err = portNumber(port); err != nil {
			return nil, c.problem(err)
		}
	}
	t.port, t.policy = cmp.Or(t.port, defaultPort), cmp.Or(t.policy, inventory.Strict)
	t.keys = c.identities(alias, s.Key, t)
	t.knownHosts = c.knownHosts(alias, s.KnownHosts)

	var err error
	if s.Bastion != nil {
		t.via, err = c.target(s.Bastion.Address, s.Bastion.SSH, depth+1)
	} else if jump := c.get(alias, "ProxyJump"); jump != "" && !strings.EqualFold(jump, "none") {
		t.via, err = c.jumps(jump, s, depth)
	}
	return t, err
}

// identities are the private keys the user names for a host.
func (c *clientConfig) identities(alias, key string, t *target) []string {
	if key != "" {
		return []string{expandHome(key)}
	}
	var out []string
	for _, f := range c.all(alias, "IdentityFile") {
		if strings.EqualFold(f, "none") {
			continue
		}
		f = strings.NewReplacer("%d", expandHome("~/"), "%h", t.host, "%n", alias, "%r", t.user, "%%", "%").Replace(f)
		out = append(out, expandHome(f))
	}
	return out
}

func (c *clientConfig) knownHosts(alias, path string) []string {
	if path != "" {
		return []string{expandHome(path)}
	}
	var out []string
	for _, f := range strings.Fields(c.get(alias, "UserKnownHostsFile")) {
		out = append(out, expandHome(f))
	}
	if out == nil {
		out = []string{expandHome(defaultKnownHosts)}
	}
	return out
}

// jumps turns a ProxyJump, [user@]host[:port] with commas in between, into targets. As with ssh, the credentials of a
// jump host are its own; how host keys are treated is taken over.
func (c *clientConfig) jumps(list string, s inventory.SSH, depth int) (*target, error) {
	var via *target
	for _, jump := range strings.Split(list, ",") {
		own := inventory.SSH{Agent: s.Agent, Passphrase: s.Passphrase, KnownHosts: s.KnownHosts, HostKeyPolicy: s.HostKeyPolicy}
		host := strings.TrimPrefix(strings.TrimSpace(jump), "ssh://")
		if i := strings.LastIndex(host, "@"); i >= 0 {
			own.User, host = host[:i], host[i+1:]
		}
		if name, port, err := net.SplitHostPort(host); err == nil {
			if own.Port, err = portNumber(port); err != nil {
				return nil, c.problem(err)
			}
			host = name
		}
		next, err := c.target(strings.Trim(host, "[]"), own, depth+1)
		if err != nil {
			return nil, err
		}
		if via != nil {
			next.via = via // ssh ignores a later jump host's own ProxyJump too
		}
		via = next
	}
	return via, nil
}

func portNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q is not a port", s)
	}
	return n, nil
}
