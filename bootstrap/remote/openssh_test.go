package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// sshdPath is where Debian and Ubuntu put the server of the package openssh-server, which these tests need.
const sshdPath = "/usr/sbin/sshd"

// sshd is OpenSSH's server for the current user, with keys and configuration of its own. One process serves one
// connection (sshd -i), so that no port has to be chosen.
type sshd struct {
	dir       string
	address   string
	key       sshtest.Key // may log in
	authority sshtest.Key // signs users
	host      inventory.Host
	wrap      []string

	mu    sync.Mutex
	procs []*exec.Cmd
}

func startSSHD(t *testing.T, extra ...string) *sshd {
	t.Helper()
	return startSSHDIn(t, nil, extra...)
}

// startSSHDIn starts sshd as the argument of the command line wrap.
func startSSHDIn(t *testing.T, wrap []string, extra ...string) *sshd {
	t.Helper()
	me, err := user.Current()
	must(t, err)
	if me.Uid == "0" { // compiled into sshd
		must(t, os.MkdirAll("/run/sshd", 0o755))
	}
	s := &sshd{dir: t.TempDir(), wrap: wrap, key: sshtest.NewKey(), authority: sshtest.NewKey()}
	ed25519, ecdsa := sshtest.NewKey(), newECDSAKey(t)
	ed25519.Write(t, s.dir+"/host_ed25519")
	ecdsa.Write(t, s.dir+"/host_ecdsa")
	s.key.Write(t, s.dir+"/id")
	writeFile(t, s.dir+"/authorized_keys", publicLine(s.key.PublicKey()))
	writeFile(t, s.dir+"/ca.pub", publicLine(s.authority.PublicKey()))
	// Of two values for a keyword sshd takes the first.
	config := strings.Join(extra, "\n") + strings.NewReplacer("DIR", s.dir).Replace(`
HostKey DIR/host_ecdsa
HostKey DIR/host_ed25519
AuthorizedKeysFile DIR/authorized_keys
TrustedUserCAKeys DIR/ca.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
`)
	writeFile(t, s.dir+"/sshd_config", []byte(config))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.address = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(t, c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.kill()
		wg.Wait()
	})
	writeFile(t, s.dir+"/known_hosts", []byte(knownhosts.Line([]string{s.address}, ed25519.PublicKey())+"\n"))
	s.host = sshtest.At(inventory.Host{SSH: inventory.SSH{User: me.Username, Key: s.dir + "/id", KnownHosts: s.dir + "/known_hosts"}}, s.address)
	return s
}

func (s *sshd) serve(t *testing.T, c net.Conn) {
	f, err := c.(*net.TCPConn).File()
	c.Close()
	if err != nil {
		t.Error(err)
		return
	}
	line := append(slices.Clone(s.wrap), sshdPath, "-i", "-e", "-f", s.dir+"/sshd_config")
	cmd := exec.Command(line[0], line[1:]...)
	var log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &log
	cmd.WaitDelay = time.Second // a command that was left behind may hold the log open
	err = cmd.Start()
	f.Close()
	if err != nil {
		t.Errorf("%v: install openssh-server", err)
		return
	}
	s.mu.Lock()
	s.procs = append(s.procs, cmd)
	s.mu.Unlock()
	_ = cmd.Wait() // it ends with the connection, with whatever status
	t.Log(log.String())
}

// served counts the connections.
func (s *sshd) served() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.procs)
}

// kill ends every connection as a crash would.
func (s *sshd) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		_ = p.Process.Kill()
	}
	s.procs = nil
}

func TestOpenSSHRun(t *testing.T) {
	h := dial(t, startSSHD(t).host)
	data := bytes.Repeat([]byte{0, 1, 2, 0xff, '\r', '\n'}, 1<<19)
	var stdout, stderr bytes.Buffer
	err := h.Run(context.Background(), Command{
		Name: "test", Line: "cat; printf '%s' \"it's $0\" >&2; exit 200", Stdin: bytes.NewReader(data), Stdout: &stdout, Stderr: &stderr,
	})
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Status != 200 || exit.Signal != "" {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(stdout.Bytes(), data) || stderr.String() != "it's sh" {
		t.Errorf("%d bytes of %d, stderr %q", stdout.Len(), len(data), stderr.String())
	}
	err = h.Run(context.Background(), Command{Name: "test", Line: "kill -TERM $$"})
	if !errors.As(err, &exit) || exit.Signal != "TERM" || exit.Status != 128+15 {
		t.Errorf("killed by a signal: %#v", err)
	}
}

// long is a command that says that it began and ends only with its session, so that none is left behind.
func long(t *testing.T) Command {
	stdin, silence := io.Pipe()
	t.Cleanup(func() { silence.Close() })
	return Command{Name: "long", Line: "echo started; exec cat", Stdin: stdin}
}

func TestOpenSSHRunEndsWithItsContext(t *testing.T) {
	h := dial(t, startSSHD(t).host)
	ctx, cancel := context.WithCancel(context.Background())
	c := long(t)
	c.Stdout = writerFunc(func([]byte) { cancel() })
	err := h.Run(ctx, c)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := h.Run(context.Background(), Command{Name: "true", Line: "true"}); err != nil {
		t.Errorf("the connection is not usable any more: %v", err)
	}
}

func TestOpenSSHLost(t *testing.T) {
	s := startSSHD(t)
	h := dial(t, s.host)
	c := long(t)
	c.Stdout = writerFunc(func([]byte) { s.kill() })
	err := h.Run(context.Background(), c)
	if !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
	must(t, h.Reconnect(context.Background()))
	must(t, h.Run(context.Background(), Command{Name: "true", Line: "true"}))
}

// sshd answers keepalive@openssh.com: a command that takes many times the timeout is not given up.
func TestOpenSSHKeepalive(t *testing.T) {
	s := startSSHD(t)
	d, _ := newDialer(t, Options{Keepalive: time.Millisecond, KeepaliveTimeout: 20 * time.Second})
	h := dialWith(t, d, s.host)
	answers := h.current().raw.lastRead()
	if err := h.Run(context.Background(), Command{Name: "sleep", Line: "sleep 0.2"}); err != nil {
		t.Error(err)
	}
	if !h.current().raw.lastRead().After(answers) {
		t.Error("there was no answer")
	}
}

func TestOpenSSHLogin(t *testing.T) {
	s := startSSHD(t)
	t.Run("certificate", func(t *testing.T) {
		own := sshtest.NewKey()
		in := s.host
		in.SSH.Key = filepath.Join(t.TempDir(), "id")
		own.Write(t, in.SSH.Key)
		writeFile(t, in.SSH.Key+"-cert.pub", publicLine(certify(t, s.authority, own.PublicKey(), ssh.UserCert, in.SSH.User)))
		dial(t, in)
	})
	t.Run("the right key among many", func(t *testing.T) {
		startAgent(t, agentKeys(strangers(10)...)...)
		in := s.host
		in.SSH.Agent = true
		dial(t, in)
	})
	t.Run("wrong key", func(t *testing.T) {
		in := s.host
		in.SSH.Key = filepath.Join(t.TempDir(), "id")
		sshtest.NewKey().Write(t, in.SSH.Key)
		d, _ := newDialer(t, Options{})
		_, err := d.Dial(context.Background(), in)
		if e := wantReason(t, err, reason.SSHAuthFailed); !strings.Contains(e.Detail, "): refused") {
			t.Errorf("%v", err)
		}
	})
	t.Run("nothing but wrong keys", func(t *testing.T) {
		startAgent(t, agentKeys(strangers(10)...)...)
		in := s.host
		in.SSH.Key, in.SSH.Agent = "", true
		d, _ := newDialer(t, Options{})
		_, err := d.Dial(context.Background(), in)
		if e := wantReason(t, err, reason.SSHAuthFailed); strings.Count(e.Detail, "): refused") != maxOthers || !strings.Contains(e.Detail, "5 more keys in the agent") {
			t.Errorf("%v", err)
		}
	})
}

func TestOpenSSHHostKeys(t *testing.T) {
	s := startSSHD(t)
	dial(t, s.host) // the ed25519 key is known, the ecdsa key is not
	for name, tc := range map[string]struct {
		known  string
		policy inventory.HostKeyPolicy
		want   reason.ID
	}{
		"unknown":  {"", inventory.Strict, reason.SSHHostKeyUnknown},
		"new":      {"", inventory.AcceptNew, ""},
		"mismatch": {knownhosts.Line([]string{s.address}, sshtest.NewKey().PublicKey()), inventory.AcceptNew, reason.SSHHostKeyMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			in := s.host
			in.SSH.KnownHosts, in.SSH.HostKeyPolicy = filepath.Join(t.TempDir(), "known_hosts"), tc.policy
			writeFile(t, in.SSH.KnownHosts, []byte(tc.known))
			d, _ := newDialer(t, Options{})
			_, err := d.Dial(context.Background(), in)
			if tc.want == "" && err != nil || tc.want != "" && !errors.Is(err, &reason.Error{ID: tc.want}) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if tc.want == "" { // what was written, ssh-keygen understands too
				out, err := exec.Command("ssh-keygen", "-F", knownhosts.Normalize(s.address), "-f", in.SSH.KnownHosts).CombinedOutput()
				if err != nil || !bytes.Contains(out, []byte("ssh-")) && !bytes.Contains(out, []byte("ecdsa-")) {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}
}

func TestOpenSSHBastions(t *testing.T) {
	outer, inner, final := startSSHD(t), startSSHD(t), startSSHD(t)
	d, _ := newDialer(t, Options{})
	in := sshtest.Behind(final.host, sshtest.Behind(inner.host, outer.host))
	var wg sync.WaitGroup
	for range 10 {
		h := dialWith(t, d, in)
		wg.Go(func() {
			var out bytes.Buffer
			if err := h.Run(context.Background(), Command{Name: "wc", Line: "wc -c", Stdin: bytes.NewReader(make([]byte, 1<<20)), Stdout: &out}); err != nil {
				t.Error(err)
			}
			if strings.TrimSpace(out.String()) != fmt.Sprint(1<<20) {
				t.Errorf("%q", out.String())
			}
		})
	}
	wg.Wait()
	if outer.served() != 1 || inner.served() != 1 {
		t.Errorf("%d and %d connections to the bastions", outer.served(), inner.served())
	}

	forbidden := startSSHD(t, "AllowTcpForwarding no")
	_, err := d.Dial(context.Background(), sshtest.Behind(final.host, forbidden.host))
	if !errors.Is(err, &reason.Error{ID: reason.SSHUnreachable}) || !strings.Contains(err.Error(), "the bastion does not allow TCP forwarding") {
		t.Errorf("%v", err)
	}
}

func TestOpenSSHDialTCP(t *testing.T) {
	h := dial(t, startSSHD(t).host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		n, _ := io.Copy(io.Discard, c)
		c.Close()
		got <- n
	}()
	c, err := h.DialTCP(context.Background(), l.Addr().String())
	must(t, err)
	if _, err := c.Write(make([]byte, 3<<20)); err != nil {
		t.Error(err)
	}
	c.Close()
	if n := <-got; n != 3<<20 {
		t.Errorf("%d bytes arrived", n)
	}
}

func TestOpenSSHFiles(t *testing.T) {
	h := dial(t, startSSHD(t).host)
	ctx := context.Background()
	dir := t.TempDir()
	name := filepath.Join(dir, "a file with 'quotes'")
	for _, size := range []int{0, 1, 100_000, 5 << 20} {
		data := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		must(t, os.WriteFile(name, data, 0o600))
		if got, err := h.ReadFile(ctx, name, upTo(int64(size))); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %d came, %v", size, len(got), err)
		}
	}
	if _, err := h.ReadFile(ctx, name, upTo(5<<20-1)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a file beyond the limit: %v", err)
	}
	if _, err := h.ReadFile(ctx, "/proc/version", upTo(4096)); err != nil {
		t.Errorf("a file without a size: %v", err)
	}
	_, err := h.ReadFile(ctx, dir+"/nothing", upTo(1))
	var e *reason.Error
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &e) || e.Doing != "reading "+dir+"/nothing" {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestOpenSSHFilesWithoutConnection(t *testing.T) {
	s := startSSHD(t)
	h := dial(t, s.host)
	long := filepath.Join(t.TempDir(), "long")
	writeFile(t, long, nil)
	must(t, os.Truncate(long, 1<<30))
	watch, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	must(t, err)
	defer syscall.Close(watch)
	_, err = syscall.InotifyAddWatch(watch, long, syscall.IN_ACCESS)
	must(t, err)
	go func() {
		if _, err := syscall.Read(watch, make([]byte, 1<<10)); err != nil { // waits until the server reads from the file
			t.Error(err)
		}
		s.kill()
	}()
	if got, err := h.ReadFile(t.Context(), long, upTo(1<<30)); !errors.Is(err, ErrLost) || got != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
