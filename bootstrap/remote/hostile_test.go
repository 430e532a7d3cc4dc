package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// upTo are bounds of a test that meets no hostile host.
func upTo(size int64) Bounds { return Bounds{Bytes: size, Time: time.Minute} }

// heap is how large the live heap gets while something runs. Several may look: a session that was
// left still writes while the next one begins.
type heap struct {
	before uint64
	mu     sync.Mutex
	most   uint64
}

func newHeap(t *testing.T) *heap {
	t.Helper()
	percent := debug.SetGCPercent(100) // whatever GOGC says: what nobody needs any more is in the heap, too
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &heap{before: m.HeapAlloc}
}

func (h *heap) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.most = max(h.most, m.HeapAlloc)
}

func (h *heap) grewBeyond(size uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most > h.before+size
}

// pour writes up to size bytes of text and looks at the heap now and then; it ends early when nobody takes them.
func pour(w io.Writer, piece string, size int64, h *heap) {
	text := []byte(strings.Repeat(piece, 1+32<<10/len(piece)))
	for written, looked := int64(0), int64(0); written < size; written += int64(len(text)) {
		if _, err := w.Write(text); err != nil {
			return
		}
		if written-looked > 8<<20 {
			looked = written
			h.look()
		}
	}
}

func wantReason(t *testing.T, err error, id reason.ID) *reason.Error {
	t.Helper()
	var e *reason.Error
	if !errors.As(err, &e) || e.ID != id {
		t.Fatalf("%v, want %s", err, id)
	}
	return e
}

func TestOutput(t *testing.T) {
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	out, err := h.Output(context.Background(), Command{Name: "test", Line: "printf 12345678; echo aside >&2"}, upTo(8))
	if err != nil || string(out) != "12345678" {
		t.Errorf("%q, %v", out, err)
	}
	var exit *ExitError
	if _, err = h.Output(context.Background(), Command{Name: "test", Line: "echo x; exit 3"}, upTo(8)); !errors.As(err, &exit) || exit.Status != 3 {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	cancel(mine)
	if _, err = h.Output(ctx, Command{Name: "test", Line: "sleep 60"}, upTo(8)); !errors.Is(err, mine) {
		t.Errorf("%v", err)
	}
}

func TestOutputOfAGigabyte(t *testing.T) {
	memory := newHeap(t)
	h := dial(t, sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
		switch {
		case strings.Contains(e.Line, "stdout"):
			pour(e.Stdout, "much\n", 1<<30, memory)
		case strings.Contains(e.Line, "stderr"):
			pour(e.Stderr, "much\n", 256<<20, memory)
		}
		return 0
	}}).Host())
	_, err := h.Output(context.Background(), Command{Name: "facts", Line: "stdout"}, upTo(8<<20))
	e := wantReason(t, err, reason.HostOutputTooLarge)
	if e.Host != "127.0.0.1" || e.Doing != "running facts" {
		t.Errorf("%v", e)
	}
	if out, err := h.Output(context.Background(), Command{Name: "facts", Line: "stderr"}, upTo(8<<20)); len(out) > 0 || err != nil {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if memory.look(); memory.grewBeyond(64 << 20) {
		t.Errorf("the heap grew beyond %d bytes by more than 64 MiB", memory.before)
	}
	if err := h.Run(context.Background(), Command{Name: "true", Line: "true"}); err != nil {
		t.Errorf("the connection is of no use any more: %v", err)
	}
}

func TestOutputThatNeverEnds(t *testing.T) {
	for name, exec := range map[string]sshtest.Handler{
		"drips": func(e *sshtest.Exec) int {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = e.Stdout.Write([]byte("."))
				case <-e.Gone:
					return 0
				}
			}
		},
		"is silent":       func(e *sshtest.Exec) int { <-e.Gone; return 0 },
		"does not let go": func(e *sshtest.Exec) int { _, _ = io.Copy(io.Discard, e.Stdin); <-e.Gone; return 0 },
		"floods stderr for ever": func(e *sshtest.Exec) int {
			for {
				if _, err := e.Stderr.Write(make([]byte, 1<<10)); err != nil {
					return 0
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := dial(t, sshtest.Listen(t, sshtest.Config{Exec: exec}).Host())
			_, err := h.Output(context.Background(), Command{Name: "facts", Line: "x"}, Bounds{Bytes: 1 << 20, Time: 50 * time.Millisecond})
			wantReason(t, err, reason.HostUnending)
			_, err = h.ReadFile(context.Background(), "/etc/x", Bounds{Bytes: 1 << 20, Time: 50 * time.Millisecond})
			if e := new(reason.Error); !errors.As(err, &e) { // what drips is no sftp
				t.Errorf("%v", err)
			}
		})
	}
}

// endless is a file without an end; its size is a lie.
type endless struct{ size int64 }

func (endless) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

func (f endless) Fileread(*sftp.Request) (io.ReaderAt, error) { return f, nil }

func (f endless) Filelist(*sftp.Request) (sftp.ListerAt, error) { return f, nil }

func (f endless) ListAt(list []os.FileInfo, _ int64) (int, error) { list[0] = f; return 1, io.EOF }

func (endless) Name() string       { return "../../../../tmp/pwned" }
func (f endless) Size() int64      { return f.size }
func (endless) Mode() os.FileMode  { return 0o644 }
func (endless) ModTime() time.Time { return time.Time{} }
func (endless) IsDir() bool        { return false }
func (endless) Sys() any           { return nil }

// streams is what an sftp server speaks on.
type streams struct {
	io.Reader
	io.Writer
}

func (streams) Close() error { return nil }

// What a server says of files goes nowhere here but into memory, and not much of it.
func TestReadFileOfAServerThatLies(t *testing.T) {
	for _, size := range []int64{0, 10, 1 << 62, -1} {
		h := dial(t, sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
			f := endless{size}
			_ = sftp.NewRequestServer(streams{e.Stdin, e.Stdout}, sftp.Handlers{FileGet: f, FileList: f}).Serve()
			return 0
		}}).Host())
		_, err := h.ReadFile(context.Background(), "/etc/kubernetes/admin.conf", upTo(1<<20))
		wantReason(t, err, reason.HostOutputTooLarge)
	}
	for name, answer := range map[string]string{
		"no sftp":               "Welcome to this machine!\n",
		"a packet of 4 GiB":     "\xff\xff\xff\xff\x02",
		"an empty packet":       "\x00\x00\x00\x00",
		"half a version":        "\x00\x00\x00\x05\x02\x00",
		"an answer to nothing":  "\x00\x00\x00\x05\x02\x00\x00\x00\x03\x00\x00\x00\x09\x65\x00\x00\xff\xff\x00\x00\x00\x00",
		"a handle without end":  "\x00\x00\x00\x05\x02\x00\x00\x00\x03\x00\x00\x00\x09\x66\x00\x00\x00\x01\xff\xff\xff\xff",
		"another kind of reply": "\x00\x00\x00\x05\x02\x00\x00\x00\x03\x00\x00\x00\x05\xc9\x00\x00\x00\x01",
	} {
		t.Run(name, func(t *testing.T) {
			h := dial(t, sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
				_, _ = io.WriteString(e.Stdout, answer)
				return 0
			}}).Host())
			_, err := h.ReadFile(context.Background(), "/etc/kubernetes/admin.conf", upTo(1<<20))
			if e := new(reason.Error); !errors.As(err, &e) {
				t.Errorf("%v", err)
			}
		})
	}
}

func obeyed(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && c != '\t' && unicode.IsControl(c) })
}

const evil = "\x1b]0;evil\x07\x1b[2J\u009b31m\xff\x00"

// What a server says before the login, and how it ends it, comes out small and does nothing to a terminal.
func TestWordsOfAServerThatNobodyTrusts(t *testing.T) {
	long := strings.Repeat(evil+"word ", 4<<10)
	for name, config := range map[string]sshtest.Config{
		"a banner": {Banner: long},
		"auth": {SSH: func(c *ssh.ServerConfig) {
			c.PublicKeyCallback = nil
			c.PasswordCallback = func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, errors.New(long) }
		}},
		"the version": {SSH: func(c *ssh.ServerConfig) { c.ServerVersion = "SSH-1.5-" + evil }},
	} {
		t.Run(name, func(t *testing.T) {
			server := sshtest.Listen(t, config)
			server.Refuse(true)
			d, _ := newDialer(t, Options{})
			_, err := d.Dial(context.Background(), server.Host())
			if err == nil {
				t.Fatal("it let us in")
			}
			var e *reason.Error
			if !errors.As(err, &e) || obeyed(e.Detail) || len(e.Detail) > 4*saidMost {
				t.Errorf("%d bytes: %q", len(e.Detail), e.Detail)
			}
		})
	}
}

// raw is a server that says these bytes, whatever it hears, and hangs up.
func raw(t *testing.T, text string) inventory.Host {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, text)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return sshtest.At(inventory.Host{SSH: inventory.SSH{User: "root", HostKey: strings.TrimSpace(string(publicLine(sshtest.NewKey().PublicKey())))}}, l.Addr().String())
}

func TestAServerThatIsNone(t *testing.T) {
	disconnect := ssh.Marshal(struct {
		Type     byte
		Reason   uint32
		Message  string
		Language string
	}{1, 2, strings.Repeat(evil+"go away ", 1<<10), ""})
	packet := append([]byte{0, 0, 0, 0, 4}, disconnect...)
	packet = append(packet, 0, 0, 0, 0)
	n := len(packet) - 4
	packet[0], packet[1], packet[2], packet[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	for name, text := range map[string]string{
		"http":                   "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a line without end":     strings.Repeat("x", 1<<20),
		"lines without end":      strings.Repeat("x\n", 1<<19),
		"noise after a greeting": "SSH-2.0-x\r\n" + strings.Repeat("\xff", 1<<16),
		"a disconnect":           "SSH-2.0-x\r\n" + string(packet),
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newDialer(t, Options{})
			_, err := d.attempt(context.Background(), mustResolve(t, d, raw(t, text)), nil, DefaultConnectTimeout)
			e := wantReason(t, err, reason.SSHUnreachable)
			if obeyed(e.Detail) || len(e.Detail) > 2*saidMost {
				t.Errorf("%q", e.Detail)
			}
		})
	}
}

func mustResolve(t *testing.T, d *Dialer, h inventory.Host) *target {
	t.Helper()
	to, err := d.resolve(h)
	must(t, err)
	return to
}

// A man in the middle who talks a server down to what can be broken gets no further than the first word.
func TestAlgorithmsThatAreNotSafe(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	sha1, err := ssh.NewSignerWithAlgorithms(signer.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	must(t, err)
	for want, config := range map[string]sshtest.Config{
		"no host key that is safe: it offers ssh-rsa":             {HostKeys: []ssh.Signer{sha1}},
		"cipher that is safe: it offers arcfour128, aes128-cbc":   {SSH: func(c *ssh.ServerConfig) { c.Ciphers = []string{"arcfour128", "aes128-cbc"} }},
		"key exchange that is safe: it offers diffie-hellman-gro": {SSH: func(c *ssh.ServerConfig) { c.KeyExchanges = []string{"diffie-hellman-group1-sha1"} }},
		"MAC that is safe: it offers hmac-sha1-96":                {SSH: func(c *ssh.ServerConfig) { c.Ciphers, c.MACs = []string{"aes128-ctr"}, []string{"hmac-sha1-96"} }},
	} {
		server := sshtest.Listen(t, config)
		d, _ := newDialer(t, Options{})
		_, err := d.Dial(context.Background(), server.Host())
		if err == nil {
			t.Errorf("%s: it is spoken to", want)
			continue
		}
		if e := wantReason(t, err, reason.SSHUnreachable); !strings.Contains(e.Detail, want) {
			t.Errorf("%q, want %q", e.Detail, want)
		}
	}
}

// Who asks for nothing may be logged in to: it is the host key that counts.
func TestAServerThatLetsEverybodyIn(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{SSH: func(c *ssh.ServerConfig) { c.NoClientAuth = true }})
	if err := dial(t, server.Host()).Run(context.Background(), Command{Name: "true", Line: "true"}); err != nil {
		t.Error(err)
	}
	other := server.Host()
	other.SSH.HostKey = strings.TrimSpace(string(publicLine(sshtest.NewKey().PublicKey())))
	d, _ := newDialer(t, Options{})
	_, err := d.Dial(context.Background(), other)
	wantReason(t, err, reason.SSHHostKeyMismatch)
}

// Who was met by accept-new is known from then on: to the next run, and behind a bastion, whoever is in between.
func TestAnotherKeyInASecondRun(t *testing.T) {
	for _, behind := range []bool{false, true} {
		server := sshtest.Listen(t, sshtest.Config{})
		h := server.Host()
		h.SSH.HostKey, h.SSH.HostKeyPolicy, h.SSH.KnownHosts = "", inventory.AcceptNew, filepath.Join(t.TempDir(), "known_hosts")
		if behind {
			h = sshtest.Behind(h, sshtest.Listen(t, sshtest.Config{}).Host())
		}
		dial(t, h)
		known, err := os.ReadFile(h.SSH.KnownHosts)
		if err != nil || !bytes.Contains(known, publicLine(server.HostKey())[:40]) {
			t.Fatalf("%q, %v", known, err)
		}
		dial(t, h)

		server.SetHostKeys(sshtest.NewKey())
		d, _ := newDialer(t, Options{})
		_, err = d.Dial(context.Background(), h)
		e := wantReason(t, err, reason.SSHHostKeyMismatch)
		if !strings.Contains(e.Detail, ssh.FingerprintSHA256(server.HostKey())) {
			t.Errorf("%v", e)
		}
		if len(server.Lines()) > 0 {
			t.Errorf("it was told %q", server.Lines())
		}
		if after, _ := os.ReadFile(h.SSH.KnownHosts); !bytes.Equal(after, known) {
			t.Errorf("known_hosts is now %q", after)
		}
	}
}

// A bastion with another key sees no login, and what is behind it is not reached.
func TestAnotherKeyOfTheBastion(t *testing.T) {
	server, bastion := sshtest.Listen(t, sshtest.Config{}), sshtest.Listen(t, sshtest.Config{})
	h := sshtest.Behind(server.Host(), bastion.Host())
	bastion.SetHostKeys(sshtest.NewKey())
	d, _ := newDialer(t, Options{})
	_, err := d.Dial(context.Background(), h)
	wantReason(t, err, reason.SSHHostKeyMismatch)
	if server.Accepted() > 0 {
		t.Error("what is behind the bastion was connected to")
	}
}

// A connection that was lost is not taken up again with somebody else, behind a bastion either.
func TestAnotherKeyAfterReconnectBehindABastion(t *testing.T) {
	server, bastion := sshtest.Listen(t, sshtest.Config{}), sshtest.Listen(t, sshtest.Config{})
	host := server.Host()
	host.SSH.HostKey, host.SSH.HostKeyPolicy, host.SSH.KnownHosts = "", inventory.AcceptNew, filepath.Join(t.TempDir(), "known_hosts")
	h := dial(t, sshtest.Behind(host, bastion.Host()))
	server.Stop()
	<-h.current().ctx.Done()
	server.SetHostKeys(sshtest.NewKey())
	must(t, os.Remove(host.SSH.KnownHosts)) // even if nobody else remembers
	server.Start(t)
	wantReason(t, h.Reconnect(context.Background()), reason.SSHHostKeyMismatch)
}
