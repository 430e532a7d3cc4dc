package bootstrap

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agnivade/levenshtein"

	"kgpu.dev/kgpu/bootstrap/remote"
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

// SSH logs in to a host with the system's ssh, the way that the inventory says. What ssh ends with, unless that is 0, is an
// *ExitError.
func SSH(ctx context.Context, o Options, so SSHOptions) error {
	h, err := o.hostCalled(so.Host)
	if err != nil {
		return err
	}
	s := newSession(o)
	defer s.close()
	hops, err := s.dialer.Route(h)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kgpu-ssh-") // mode 0700
	if err != nil {
		return fmt.Errorf("telling ssh the way: %w", err)
	}
	defer os.RemoveAll(dir)
	config, err := sshConfig(dir, hops)
	if err != nil {
		return fmt.Errorf("telling ssh the way: %w", err)
	}
	cmd := exec.CommandContext(ctx, so.Program, append([]string{"-F", config, "--", sshAlias(len(hops) - 1)}, so.Command...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = so.Stdin, so.Stdout, so.Stderr
	return runChild(cmd)
}

// hostCalled is the host of this name or address; the control plane for none.
func (o Options) hostCalled(name string) (inventory.Host, error) {
	var known []string
	near, distance := "", 1<<30
	for _, h := range o.Inventory.Hosts {
		if name == "" && h.Role == inventory.ControlPlane || name != "" && (name == h.Name || name == h.Address) {
			return h, nil
		}
		known = append(known, h.ID())
		for _, word := range []string{h.Name, h.Address} {
			if d := levenshtein.ComputeDistance(name, word); word != "" && d < distance && d <= max(1, len(word)/3) {
				near, distance = word, d
			}
		}
	}
	text := fmt.Sprintf("no host %q in %s; it has %s", name, o.Inventory.Path, strings.Join(known, ", "))
	if near != "" {
		text += fmt.Sprintf(". Did you mean %q?", near)
	}
	return inventory.Host{}, &UsageError{Message: text}
}

func sshAlias(hop int) string { return fmt.Sprintf("kgpu-%d", hop) }

// sshConfig writes an ssh_config with the way to the last of the hops into a folder, and returns its path.
func sshConfig(dir string, hops []remote.Hop) (string, error) {
	var b strings.Builder
	for i, hop := range hops {
		known := make([]string, len(hop.KnownHosts))
		for i, path := range hop.KnownHosts {
			known[i] = quotedPath(path)
		}
		fmt.Fprintf(&b, "Host %s\n  HostName %s\n  Port %d\n  User %s\n", sshAlias(i), quotedPath(hop.Host), hop.Port, quoted(hop.User))
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
