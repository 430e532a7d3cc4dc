package access

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// KubectlOptions are what Kubectl needs beyond what all stories need.
type KubectlOptions struct {
	Program    string // kubectl on this machine; empty: there is none
	Kubeconfig string // the administrator's, here; empty: beside the inventory
	SSH        string // ssh on this machine; empty: there is none
	Args       []string

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Kubectl runs kubectl as the administrator of the cluster: on this machine, through SSH where the API server cannot be
// reached from here, or on the control plane where there is no kubectl here or SSH lets nothing through. A kubectl that fails
// is an *ExitError.
func Kubectl(ctx context.Context, o session.Options, k KubectlOptions) error {
	c := To(session.New(o), k.Kubeconfig)
	defer c.Close()
	path := c.kubeconfig
	var blocked error
	if k.Program != "" {
		if a, err := c.readKubeconfig(path); err == nil {
			if blocked = reachAPI(ctx, a, directly); blocked == nil {
				return k.here(ctx, path)
			}
		}
	}
	if err := c.ConnectPlane(ctx); err != nil {
		return err
	}
	if k.Program == "" {
		return c.kubectlThere(ctx, k)
	}
	inside, a, err := c.fetched(ctx)
	if err != nil {
		return err
	}
	if blocked == nil || isAnother(blocked) { // there was no file, or one of a former cluster
		if blocked = reachAPI(ctx, a, directly); blocked == nil {
			return k.here(ctx, path)
		}
	}
	if err := reachAPI(ctx, inside, c.through(c.AdminPlane().ID())); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.Warn("kubectl runs there: the API server cannot be reached from here (%v), nor through SSH (%v)", blocked, err)
		return c.kubectlThere(ctx, k)
	}
	return c.kubectlThrough(ctx, k, inside, a)
}

// readKubeconfig is what a kubeconfig that was fetched before opens, if that is this cluster.
func (c *Cluster) readKubeconfig(path string) (*kubeconfig.Access, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if c.isOfAnother(data) {
		return nil, errors.New("it is of another cluster")
	}
	return kubeconfig.Parse(data)
}

// kubectlThrough runs kubectl here, and passes on what it says to the API server. The file that leads it there has no key in
// it, which would stay behind if kgpu were killed: kubectl takes that from the file beside the inventory.
func (c *Cluster) kubectlThrough(ctx context.Context, k KubectlOptions, inside, named *kubeconfig.Access) error {
	address, err := inside.Address()
	if err != nil {
		return err
	}
	l, err := listen(0)
	if err != nil {
		return err
	}
	defer l.Close()
	text, err := tunnelled(l, inside, named).EncodeWay()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kgpu-") // mode 0700
	if err != nil {
		return FileError("making a kubeconfig", err)
	}
	defer os.RemoveAll(dir)
	path, err := both(dir, text, c.kubeconfig)
	if err != nil {
		return FileError("making a kubeconfig", err)
	}
	served, end := context.WithCancel(ctx)
	forwarded := make(chan error, 1)
	go func() { forwarded <- c.forward(served, l, c.AdminPlane().ID(), address) }()
	err = k.here(ctx, path)
	end()
	return errors.Join(err, <-forwarded)
}

// both is the value of KUBECONFIG for the way in text and the user in the file saved. The first file that has an entry of a
// name wins. The saved file is linked to: its own path may have a colon, which separates paths.
// Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/.
func both(dir string, text []byte, saved string) (string, error) {
	way, user := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "user")
	saved, err := filepath.Abs(saved)
	if err != nil {
		return "", err
	}
	return way + string(filepath.ListSeparator) + user, errors.Join(atomicfile.Write(way, text, 0o600), os.Symlink(saved, user))
}

// here runs the kubectl of this machine.
func (k KubectlOptions) here(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, k.Program, k.Args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = k.Stdin, k.Stdout, k.Stderr
	return runChild(cmd)
}

// childPatience is how long a program may take to end when it is told to.
const childPatience = 5 * time.Second

// runChild runs a program for the user, with what stands for its exit status when it fails. When ctx ends it is told so.
func runChild(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = childPatience
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status := exit.ExitCode()
		if by, ok := exit.Sys().(syscall.WaitStatus); ok && by.Signaled() {
			status = 128 + int(by.Signal())
		}
		return &ExitError{Status: status}
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	return nil
}

// kubectlRuns runs kubectl with the arguments that line has in base64, a NUL after each. kubectl keeps its cache below HOME;
// there is to be none. The package's own comes before one in /usr/local.
const kubectlRuns = findsKubectl + `exec ` + asAdmin

// kubectlRunsWithFiles does so in a folder with what the tar archive has that comes first, size bytes of it. No disk sees it.
const kubectlRunsWithFiles = `umask 077; dir=$(mktemp -d /run/kgpu-kubectl.XXXXXX) || exit; trap "rm -rf -- $dir" EXIT; ` +
	`head -c "$size" | tar -xC "$dir" && cd "$dir" || exit; ` + findsKubectl + asAdmin + `; exit "$?"`

const findsKubectl = `PATH=:$PATH; PATH=${PATH//:\/usr\/local\/sbin/}; PATH=${PATH//:\/usr\/local\/bin/}; PATH=${PATH#:}:/usr/local/bin; mapfile -t -d "" args < <(base64 -d <<<"$line"); export HOME=/proc/kgpu-no-home; `

const asAdmin = `kubectl --kubeconfig /etc/kubernetes/admin.conf "${args[@]}"`

func (k KubectlOptions) encodedArgs() string {
	var args strings.Builder
	for _, a := range k.Args {
		args.WriteString(a + "\x00")
	}
	return base64.StdEncoding.EncodeToString([]byte(args.String()))
}

// kubectlThere runs the kubectl of the control plane, with a terminal where that is wanted and kgpu has one. Without, its
// arguments are the first line of its input, and the size of the files that they name the second, before these.
func (c *Cluster) kubectlThere(ctx context.Context, k KubectlOptions) error {
	args, archive, err := k.withFiles()
	if err != nil {
		return err
	}
	k.Args = args
	line := kubectlRuns
	if archive != nil {
		line = kubectlRunsWithFiles
	}
	if k.wantsTerminal() && report.IsTerminal(k.Stdin) && report.IsTerminal(k.Stdout) {
		if k.SSH != "" && archive == nil {
			return c.kubectlAtTerminal(ctx, k)
		}
		c.Warn("kubectl has no terminal there: that needs ssh on this machine, and no files to be sent. Install the OpenSSH client, or kubectl")
	}
	err = c.Conn(c.AdminPlane().ID()).Run(ctx, remote.Command{
		Name: "kubectl", Line: `bash -c 'IFS= read -r line && read -r size || exit; ` + line + `'`, Root: true,
		Stdin:  io.MultiReader(strings.NewReader(fmt.Sprintf("%s\n%d\n", k.encodedArgs(), len(archive))), bytes.NewReader(archive), k.Stdin),
		Stdout: forTerminal(k.Stdout), Stderr: forTerminal(k.Stderr),
	})
	if exit, ok := errors.AsType[*remote.ExitError](err); ok {
		if exit.Status == noProgram {
			if missing := c.clusterMissing(ctx); missing != nil {
				return missing
			}
		}
		return &ExitError{Status: exit.Status}
	}
	return err
}

// noProgram is a shell's exit status where the program is not there.
const noProgram = 127

// forTerminal is w, without what a host could do to a terminal with it. A pipe gets what comes.
func forTerminal(w io.Writer) io.Writer {
	if report.IsTerminal(w) {
		return &whole{to: printable.Writer(w)}
	}
	return w
}

// whole passes whole characters on: what is cut off at the end of a piece waits for the next.
type whole struct {
	to   io.Writer
	rest []byte
}

func (w *whole) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text)
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				end = i
			}
			break
		}
	}
	_, err := w.to.Write(text[:end])
	w.rest = bytes.Clone(text[end:])
	return len(p), err
}

// terminalFlag is kubectl's --tty, also among other flags of one letter.
var terminalFlag = regexp.MustCompile(`^(-[iq]*t|--tty$|--tty=true$)`)

// wantsTerminal reports whether kubectl is to have a terminal: for a program in a pod, or an editor.
func (k KubectlOptions) wantsTerminal() bool {
	own := k.Args
	if end := slices.Index(own, "--"); end >= 0 {
		own = own[:end]
	}
	return slices.ContainsFunc(own, func(a string) bool { return a == "edit" || terminalFlag.MatchString(a) })
}

// kubectlAtTerminal runs the kubectl of the control plane with kgpu's terminal, as ssh hands it on: sudo may ask there.
func (c *Cluster) kubectlAtTerminal(ctx context.Context, k KubectlOptions) error {
	cp := c.AdminPlane()
	hops, err := c.Route(cp)
	if err != nil {
		return err
	}
	line := `bash -c 'line=$1; ` + kubectlRuns + `' kgpu ` + k.encodedArgs()
	if hops[len(hops)-1].User != "root" {
		line = "sudo -- " + line
	}
	cmd, done, err := c.sshCommand(ctx, k.SSH, cp, true, line)
	if err != nil {
		return err
	}
	defer done()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = k.Stdin, k.Stdout, k.Stderr
	return runChild(cmd)
}
