package access

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// What ssh is told is what it understands: the configuration is read by ssh itself.
func TestSSHConfig(t *testing.T) {
	dir := t.TempDir()
	config, err := sshConfig(dir, []remote.Hop{
		{User: "b", Host: "bastion", Port: 2222, Agent: true, KnownHosts: []string{"/home/me/.ssh/known hosts", "/more"}, Policy: inventory.AcceptNew},
		{User: "ubuntu", Host: "10.0.0.11", Port: 22, Keys: []string{"/home/me/my 100% \"key\""}, HostKey: "ssh-ed25519 AAAA", Policy: inventory.Strict},
		{User: "root", Host: "10.0.0.12", Port: 22, KnownHosts: []string{"/more"}, Policy: inventory.Strict},
	}, true)
	must(t, err)
	told := func(alias string) string {
		out, err := exec.Command("ssh", "-F", config, "-G", alias).Output()
		must(t, err)
		return string(out)
	}
	for alias, want := range map[string][]string{
		"kgpu-0": {"user b", "hostname bastion", "port 2222", "stricthostkeychecking accept-new", `userknownhostsfile "/home/me/.ssh/known hosts" /more`, "globalknownhostsfile /dev/null", "connecttimeout 15", "serveraliveinterval 6"},
		"kgpu-1": {
			"user ubuntu", "hostname 10.0.0.11", "port 22", "identityagent none", "proxyjump kgpu-0", "hostkeyalias kgpu-1", "updatehostkeys false",
			"userknownhostsfile " + filepath.Join(dir, "known-1"), `identityfile /home/me/my 100% "key"`,
		},
	} {
		got := strings.ReplaceAll(told(alias), "100%%", "100%") // releases differ in when they resolve it
		for _, line := range want {
			plain := strings.ReplaceAll(line, `"/home/me/.ssh/known hosts"`, "/home/me/.ssh/known hosts")
			if !strings.Contains(got, line+"\n") && !strings.Contains(got, plain+"\n") {
				t.Errorf("%s: no %q in\n%s", alias, line, got)
			}
		}
	}
	if !strings.Contains(told("kgpu-2"), "stricthostkeychecking ask\n") || strings.Contains(told("kgpu-1"), "stricthostkeychecking ask\n") {
		t.Error("ssh is not to ask about hosts that nobody knows, or about one whose key is pinned")
	}
	if !strings.Contains(told("kgpu-1"), "stricthostkeychecking") || strings.Contains(told("kgpu-1"), "stricthostkeychecking accept-new") {
		t.Error("the host's key is taken as it comes")
	}
	if known, err := os.ReadFile(filepath.Join(dir, "known-1")); err != nil || string(known) != "kgpu-1 ssh-ed25519 AAAA\n" {
		t.Errorf("%q, %v", known, err)
	}
}

// The system's ssh goes through a bastion to a host whose key is pinned, and its exit status is handed on; another host key is
// refused.
func TestSSH(t *testing.T) {
	program, err := exec.LookPath("ssh")
	must(t, err)
	host, bastion := sshtest.Listen(t, sshtest.Config{}), sshtest.Listen(t, sshtest.Config{})
	h := sshtest.Behind(host.Host(), bastion.Host())
	h.Name, h.Role = "w1", inventory.Worker
	cp := sshtest.Listen(t, sshtest.Config{})
	c := cp.Host()
	c.Name, c.Role = "cp1", inventory.ControlPlane
	o := session.Options{Inventory: &inventory.Inventory{Path: "inventory.yaml", Hosts: []inventory.Host{h, c}}, Events: event.Discard}
	run := func(name string, command ...string) (string, string, error) {
		var out, errs bytes.Buffer
		err := SSH(t.Context(), o, SSHOptions{Program: program, Host: name, Command: command, Stdin: strings.NewReader("input\n"), Stdout: &out, Stderr: &errs})
		return out.String(), errs.String(), err
	}
	var exit *ExitError
	out, errs, err := run("w1", "cat; echo trouble >&2;", "exit", "7")
	if !errors.As(err, &exit) || exit.Status != 7 || out != "input\n" || !strings.Contains(errs, "trouble\n") || bastion.Accepted() == 0 {
		t.Errorf("%v; said %q and %q, through the bastion %d times", err, out, errs, bastion.Accepted())
	}
	if _, errs, err = run("", "exit", "3"); !errors.As(err, &exit) || exit.Status != 3 || cp.Accepted() == 0 {
		t.Errorf("the control plane: %v, %s", err, errs)
	}
	host.SetHostKeys(sshtest.NewKey())
	if _, errs, err = run("w1", "true"); !errors.As(err, &exit) || exit.Status != 255 || !strings.Contains(errs, "Host key verification failed") {
		t.Errorf("another host key: %v, %s", err, errs)
	}
	var usage *reason.UsageError
	for name, want := range map[string]string{"v1": `inventory.yaml. Did you mean "w1"? It has w1, cp1`, "w2": "inventory.yaml. It has w1, cp1", "somewhere": "inventory.yaml. It has w1, cp1"} {
		if _, _, err := run(name); !errors.As(err, &usage) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is run on a host has kgpu's terminal, where kgpu has one.
func TestSSHAtATerminal(t *testing.T) {
	program, err := exec.LookPath("ssh")
	must(t, err)
	h := sshtest.Listen(t, sshtest.Config{}).Host()
	h.Role = inventory.ControlPlane
	o := session.Options{Inventory: &inventory.Inventory{Path: "inventory.yaml", Hosts: []inventory.Host{h}}, Events: event.Discard}
	_, screen, terminal := person(t)
	so := SSHOptions{Program: program, Command: []string{"[ -t 0 ] && echo at a terminal || echo at none"}, Stdin: terminal, Stdout: terminal, Stderr: terminal}
	must(t, SSH(t.Context(), o, so))
	screenUpTo(t, bufio.NewReader(screen), "at a terminal")
	var out bytes.Buffer
	so.Stdout = &out
	if err := SSH(t.Context(), o, so); err != nil || out.String() != "at none\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
