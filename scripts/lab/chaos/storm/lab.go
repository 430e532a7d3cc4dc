package storm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kgpu.dev/kgpu/scripts/lab/hosts"
	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// Lab is the hosts, and the programs that are tried on them.
type Lab struct {
	place.Place
	Program string   // lab's
	Kgpu    string   // kgpu's
	Hosts   []string // by name, the control plane first
	Cards   []string // that hosts have, as `lab up --gpus` takes them: w1=2xA100
	Disks   bool     // / and /var of each host are file systems of their own, which lose at a power cut what nobody synced

	address map[string]string // by host
	host    map[string]string // by address
	dir     string            // of the storm's own files
	limit   time.Duration     // of a run of a program; zero: the usual one
	silence time.Duration     // of a run that was killed and still has the cluster; zero: lockSilence
	group   string            // the control group above those of the hosts
	made    *hosts.Lab
}

// Open makes the lab's hosts, anew, and waits until they have booted. The files of the storm go to dir.
func Open(ctx context.Context, l *Lab, dir string) error {
	l.dir, l.address, l.host = dir, map[string]string{}, map[string]string{}
	for _, verb := range l.making() {
		if _, err := l.verb(ctx, verb...); err != nil {
			return err
		}
	}
	status, err := l.verb(ctx, "status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(status) {
		if f := strings.Fields(line); len(f) > 2 {
			l.address[f[0]], l.host[f[1]] = f[1], f[0]
		}
	}
	err = l.each(func(host string) error {
		// What a host does at its first boot only, faults would make differ. Nothing may be half done when it goes down.
		if _, err := l.exec(ctx, host, Booted); err != nil {
			return err
		}
		if _, err := l.verb(ctx, "reboot", host); err != nil {
			return err
		}
		_, err := l.exec(ctx, host, Booted)
		return err
	})
	if err != nil {
		return err
	}
	if l.made, err = hosts.Open(l.Place, io.Discard); err != nil {
		return err
	}
	l.group = "kgpu-lab/" + l.made.Bridge()
	return l.writeInventory(ctx, "1.36")
}

// making are the verbs that make the hosts.
func (l *Lab) making() [][]string {
	prepare, up := []string{"prepare"}, []string{"up", "--workers", fmt.Sprint(len(l.Hosts) - 1)}
	if len(l.Cards) > 0 {
		prepare = append(prepare, "gpu")
	}
	for _, hand := range l.Cards {
		up = append(up, "--gpus", hand)
	}
	if l.Disks {
		for _, host := range l.Hosts {
			up = append(up, "--disks", host)
		}
	}
	return [][]string{{"destroy"}, prepare, up}
}

// kgpuOf is where the machine sees the host's /var/lib/kgpu. That of a host with disks is seen through its process 1 alone, and while it
// is off, not at all.
func (l *Lab) kgpuOf(host string) string {
	const dir = "var/lib/kgpu"
	if !l.Disks {
		return filepath.Join(l.Host(host), dir)
	}
	root, up := l.made.Root(host)
	if !up {
		return ""
	}
	return filepath.Join(root, dir)
}

// Booted is a bash script that waits until a host has booted: addresses and units that are still to come would count as changes.
const Booted = `timeout 300 systemctl is-system-running --wait >/dev/null || [ $? != 124 ]
timeout 60 bash -c 'until [ -z "$(ip address show tentative)" ]; do sleep 0.1; done'`

// Destroy takes the hosts away.
func (l *Lab) Destroy() error {
	_, err := l.verb(context.Background(), "destroy")
	return err
}

// output makes a program's command, runs it for so long at most, and returns what it printed; the error has the end of what it
// said.
func output(ctx context.Context, most time.Duration, program func(context.Context) *exec.Cmd) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("not done after %s", most))
	defer cancel()
	cmd := program(ctx)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(context.Cause(ctx), err), tail(stdout.String()+stderr.String(), 40))
	}
	return stdout.String(), err
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func head(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(len(lines), n)], "\n")
}

// each does something for every host, at the same time.
func (l *Lab) each(do func(host string) error) error {
	var all errgroup.Group
	for _, host := range l.Hosts {
		all.Go(func() error { return do(host) })
	}
	return all.Wait()
}

// preparing bounds what the lab builds where it never built anything.
const preparing = time.Hour

// verb runs a verb of the lab's program.
func (l *Lab) verb(ctx context.Context, args ...string) (string, error) {
	most := cmp.Or(l.limit, limit)
	if args[0] == "prepare" {
		most = preparing
	}
	return output(ctx, most, func(ctx context.Context) *exec.Cmd {
		return process.Group(ctx, l.Program, append([]string{"--name", l.Name}, args...)...)
	})
}

// exec runs a bash script as root on a host.
func (l *Lab) exec(ctx context.Context, host, script string) (string, error) {
	return l.verb(ctx, "exec", host, "bash", "-ec", script)
}

// kgpu is a run of kgpu, whose folder is among the storm's files.
func (l *Lab) kgpu(ctx context.Context, args ...string) *exec.Cmd {
	cmd := process.Group(ctx, l.Kgpu, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+l.dir)
	return cmd
}

// kgpuTo runs kgpu to its end.
func (l *Lab) kgpuTo(ctx context.Context, args ...string) (string, error) {
	return output(ctx, cmp.Or(l.limit, limit), func(ctx context.Context) *exec.Cmd { return l.kgpu(ctx, args...) })
}

// Record is the file with the events of all runs of kgpu.
func (l *Lab) Record() string { return filepath.Join(l.dir, "kgpu.json") }

func (l *Lab) inventory() string { return filepath.Join(l.dir, "inventory.yaml") }

// forCards is what an inventory says of the lab where hosts have cards.
const forCards = `  cuda: {fingerprint: %[1]s}
  nvidiaContainerToolkit: {fingerprint: %[1]s}
preflight: {ignore: [HOST_DISK_FULL]} # the lab's CUDA has none of its gigabytes
`

// writeInventory writes the inventory of a cluster of all hosts: containerd and flannel, this Kubernetes, and for cards all that kgpu does
// for them.
func (l *Lab) writeInventory(ctx context.Context, version string) error {
	env, err := l.verb(ctx, "env")
	if err != nil {
		return err
	}
	value := map[string]string{}
	for line := range strings.Lines(env) {
		name, v, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		value[name] = strings.Trim(v, "'")
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# A cluster that comes up under faults.
cluster: chaos
kubernetes:
  version: "%[4]s"
  kubeletConfiguration:
    failCgroupV1: false # this machine may have cgroup v1
    evictionHard: {memory.available: 100Mi, nodefs.available: 1Gi, imagefs.available: 1Gi} # the disk is the machine's
    imageGCHighThresholdPercent: 100
  ignorePreflightErrors: [SystemVerification]
  kubeProxyConfiguration: {conntrack: {maxPerCore: 0, min: 0}} # the kernel is shared
runtime: containerd
network: flannel
ssh: {user: ubuntu, key: %[1]s, agent: false, knownHosts: %[2]s}
repositories:
  kubernetes: {fingerprint: %[3]s}
  docker: {fingerprint: %[3]s}
`, value["KGPU_LAB_KEY"], value["KGPU_LAB_KNOWN_HOSTS"], value["KGPU_LAB_FINGERPRINT"], version)
	if len(l.Cards) > 0 {
		fmt.Fprintf(&b, forCards, value["KGPU_LAB_FINGERPRINT"])
	}
	b.WriteString("hosts:\n")
	for i, host := range l.Hosts {
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		if l.address[host] == "" {
			return errors.New("the lab has no host " + host)
		}
		fmt.Fprintf(&b, "  - {address: %s, role: %s}\n", l.address[host], role)
	}
	return os.WriteFile(l.inventory(), []byte(b.String()), 0o600)
}
