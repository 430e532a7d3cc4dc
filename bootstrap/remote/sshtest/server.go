// Package sshtest is an SSH server and a bad network for tests.
package sshtest

import (
	"bytes"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/inventory"
)

// Config says what a Server does. The zero value is a server that lets its client key in and runs commands with the
// local sh.
type Config struct {
	HostKeys   []ssh.Signer    // default: a new ed25519 key
	Authorized []ssh.PublicKey // let in besides the server's client key
	Authority  ssh.PublicKey   // user certificates it signed are let in too; nil: none
	Exec       Handler         // default: Local
	Banner     string          // what the server says before it decides about a login
	MaxTries   int             // refused keys before the server hangs up, as sshd's MaxAuthTries; 0: the ssh package's default
	HangUps    int             // so many connections are closed before a word is said
	Mute       bool            // connections are accepted and nothing is ever said
	Slow       time.Duration   // after a connection is accepted, before the first word
	Deaf       bool            // keepalives are not answered
	NoTCP      bool            // TCP forwarding is prohibited

	SSH func(*ssh.ServerConfig) // changes what the server speaks; nil: as it is

	Dial func(network, address string) (net.Conn, error) // for TCP forwarding; default: net.Dial
}

// Server is an SSH server. Anybody's user name is as good as another.
type Server struct {
	clientKey Key

	mu       sync.Mutex
	config   Config
	refuse   bool
	forced   Handler
	keyFile  string
	address  string
	listener net.Listener
	conns    map[net.Conn]bool
	accepted int
	lines    []string
	wg       sync.WaitGroup
}

// New makes a server that does not listen; give it connections with Serve.
func New(config Config) *Server {
	s := &Server{clientKey: NewKey(), config: config, conns: map[net.Conn]bool{}}
	if config.HostKeys == nil {
		s.config.HostKeys = []ssh.Signer{NewKey()}
	}
	if config.Exec == nil {
		s.config.Exec = Local()
	}
	if config.Dial == nil {
		s.config.Dial = net.Dial
	}
	s.config.Authorized = append(slices.Clone(config.Authorized), s.clientKey.PublicKey())
	return s
}

// Listen makes a server on a free port of the loopback address; it stops when the test ends.
func Listen(tb testing.TB, config Config) *Server {
	tb.Helper()
	s := New(config)
	s.keyFile = filepath.Join(tb.TempDir(), "id")
	s.clientKey.Write(tb, s.keyFile)
	s.address = "127.0.0.1:0"
	s.Start(tb)
	tb.Cleanup(func() {
		s.Stop()
		s.wg.Wait()
	})
	return s
}

// Start lets a stopped server listen again, on the address it had.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	s.change(func() { s.listener, s.address = l, l.Addr().String() })
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.Serve(c) })
		}
	})
}

// Stop is the machine going down: nobody listens any more, every connection ends.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
	}
	for c := range s.conns {
		c.Close()
	}
}

// Addr is where the server listens, host:port.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Host is the server as the inventory describes it: the user is root, so that commands go without sudo, the key is the
// server's client key, the host key is pinned.
func (s *Server) Host() inventory.Host {
	return At(inventory.Host{SSH: inventory.SSH{User: "root", Key: s.keyFile, HostKey: s.HostKeyLine()}}, s.Addr())
}

// HostKeyLine is the server's first host key as the inventory pins it.
func (s *Server) HostKeyLine() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.HostKey())))
}

// HostKey is the server's first host key.
func (s *Server) HostKey() ssh.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.HostKeys[0].PublicKey()
}

// ClientKey may log in.
func (s *Server) ClientKey() Key { return s.clientKey }

// At is h at another address, host:port.
func At(h inventory.Host, address string) inventory.Host {
	host, port, _ := net.SplitHostPort(address)
	h.Address = host
	h.SSH.Port, _ = strconv.Atoi(port)
	return h
}

// Behind is h with the server bastion in front.
func Behind(h inventory.Host, bastion inventory.Host) inventory.Host {
	h.SSH.Bastion = &inventory.Bastion{Address: bastion.Address, SSH: bastion.SSH}
	return h
}

// SetHostKeys gives the server other host keys, as when the machine was reinstalled.
func (s *Server) SetHostKeys(keys ...ssh.Signer) { s.change(func() { s.config.HostKeys = keys }) }

// Handle lets commands be run by another handler.
func (s *Server) Handle(h Handler) { s.change(func() { s.config.Exec = h }) }

// Force lets a handler run in the place of every command, as a forced command or a shell that is none.
func (s *Server) Force(h Handler) { s.change(func() { s.forced = h }) }

// Refuse lets nobody in, or again those who may.
func (s *Server) Refuse(yes bool) { s.change(func() { s.refuse = yes }) }

// Accepted counts the connections so far.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Lines are the commands that were asked for so far.
func (s *Server) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// Serve speaks SSH on c until it ends.
func (s *Server) Serve(c net.Conn) {
	defer c.Close()
	config, ok := s.admit(c)
	defer s.change(func() { delete(s.conns, c) })
	if !ok {
		return
	}
	if config.Mute {
		_, _ = c.Read(make([]byte, 1<<16))
		_, _ = c.Read(make([]byte, 1))
		return
	}
	time.Sleep(config.Slow)
	conn, channels, requests, err := ssh.NewServerConn(c, s.sshConfig(config))
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for r := range requests {
			if !config.Deaf {
				_ = r.Reply(false, nil)
			}
		}
	})
	for nc := range channels {
		switch nc.ChannelType() {
		case "session":
			wg.Go(func() { s.session(conn.User(), nc) })
		case "direct-tcpip":
			wg.Go(func() { forward(nc, config) })
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "")
		}
	}
	wg.Wait()
}

// admit counts a connection and decides whether it is talked to.
func (s *Server) admit(c net.Conn) (Config, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
	s.accepted++
	return s.config, s.accepted > s.config.HangUps
}

// change does something to what all connections share.
func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

var errRefused = errors.New("refused")

func (s *Server) sshConfig(config Config) *ssh.ServerConfig {
	plain := func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.refuse && slices.ContainsFunc(s.config.Authorized, func(k ssh.PublicKey) bool { return equal(k, key) }) {
			return &ssh.Permissions{}, nil
		}
		return nil, errRefused
	}
	checker := &ssh.CertChecker{
		IsUserAuthority: func(key ssh.PublicKey) bool { return config.Authority != nil && equal(config.Authority, key) },
		UserKeyFallback: plain,
	}
	out := &ssh.ServerConfig{PublicKeyCallback: checker.Authenticate, MaxAuthTries: config.MaxTries}
	if config.Banner != "" {
		out.BannerCallback = func(ssh.ConnMetadata) string { return config.Banner }
	}
	for _, k := range config.HostKeys {
		out.AddHostKey(k)
	}
	if config.SSH != nil {
		config.SSH(out)
	}
	return out
}

func equal(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
