package access

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// SSHOptions are what SSH needs beyond what all stories need.
type SSHOptions struct {
	Program string   // ssh on this machine
	Host    string   // name or address; empty: the control plane
	Command []string // what is run there, as ssh has it: the words with spaces in between, for the shell there; none: a shell

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// SSH logs in to a host with the system's ssh, the way that the inventory says. Where kgpu has a terminal, what is run there
// has one, too. What ssh ends with, unless that is 0, is an *ExitError.
func SSH(ctx context.Context, o session.Options, so SSHOptions) error {
	c := To(session.New(o), "")
	defer c.Close()
	h := c.AdminPlane()
	if so.Host != "" {
		ids, err := o.Named([]string{so.Host})
		if err != nil {
			return err
		}
		h = o.Inventory.Hosts[slices.IndexFunc(o.Inventory.Hosts, func(h inventory.Host) bool { return h.ID() == ids[0] })]
	}
	cmd, done, err := c.sshCommand(ctx, so.Program, h, report.IsTerminal(so.Stdin) && report.IsTerminal(so.Stdout), so.Command...)
	if err != nil {
		return err
	}
	defer done()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = so.Stdin, so.Stdout, so.Stderr
	return runChild(cmd)
}

// sshCommand is the system's ssh that logs in to a host the way that the inventory says. With terminal, a command has that of
// this process, as a shell has it anyway. done is called when the command has ended.
func (c *Cluster) sshCommand(ctx context.Context, program string, h inventory.Host, terminal bool, command ...string) (cmd *exec.Cmd, done func(), err error) {
	hops, err := c.Route(h)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "kgpu-ssh-") // mode 0700
	if err != nil {
		return nil, nil, fmt.Errorf("telling ssh the way: %w", err)
	}
	done = func() { os.RemoveAll(dir) }
	config, err := sshConfig(dir, hops, c.Trust != nil)
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("telling ssh the way: %w", err)
	}
	args := []string{"-F", config}
	if terminal {
		args = append(args, "-t")
	}
	return exec.CommandContext(ctx, program, slices.Concat(args, []string{"--", sshAlias(len(hops) - 1)}, command)...), done, nil
}

// A host that is not there is given up as kgpu itself does; a link that is dead, in under 20 s: after 3 questions.
const sshPatience, sshAlive = remote.DefaultConnectTimeout, 6 * time.Second

func sshAlias(hop int) string { return fmt.Sprintf("kgpu-%d", hop) }

// sshConfig writes an ssh_config with the way to the last of the hops into a folder, and returns its path. Where somebody can be
// asked about a host that nobody knows, ssh does that.
func sshConfig(dir string, hops []remote.Hop, ask bool) (string, error) {
	var b strings.Builder
	for i, hop := range hops {
		known := make([]string, len(hop.KnownHosts))
		for i, path := range hop.KnownHosts {
			known[i] = quotedPath(path)
		}
		fmt.Fprintf(&b, "Host %s\n  HostName %s\n  Port %d\n  User %s\n", sshAlias(i), quotedPath(hop.Host), hop.Port, quoted(hop.User))
		fmt.Fprintf(&b, "  ConnectTimeout %d\n  ServerAliveInterval %d\n", int(sshPatience.Seconds()), int(sshAlive.Seconds()))
		checking := "yes"
		if hop.HostKey != "" {
			file := filepath.Join(dir, fmt.Sprintf("known-%d", i))
			if err := os.WriteFile(file, []byte(sshAlias(i)+" "+hop.HostKey+"\n"), 0o600); err != nil {
				return "", err
			}
			known = []string{quotedPath(file)}
			fmt.Fprintf(&b, "  HostKeyAlias %s\n  UpdateHostKeys no\n", sshAlias(i))
		} else if hop.Policy == inventory.AcceptNew {
			checking = "accept-new"
		} else if ask {
			checking = "ask"
		}
		fmt.Fprintf(&b, "  StrictHostKeyChecking %s\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n", checking, strings.Join(known, " "))
		for _, key := range hop.Keys {
			fmt.Fprintf(&b, "  IdentityFile %s\n", quotedPath(key))
		}
		if !hop.Agent {
			b.WriteString("  IdentityAgent none\n")
		}
		if i > 0 {
			fmt.Fprintf(&b, "  ProxyJump %s\n", sshAlias(i-1))
		}
	}
	path := filepath.Join(dir, "config")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// quotedPath is quoted where a percent sign begins a token.
func quotedPath(s string) string { return quoted(strings.ReplaceAll(s, "%", "%%")) }

// quoted is one argument of an ssh_config, which has no line ends.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "").Replace(s) + `"`
}
