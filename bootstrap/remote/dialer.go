// Package remote reaches machines over SSH: one connection per host, bastions shared between hosts, commands as root,
// files over sftp. It knows nothing of what the commands do.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/singleflight"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Defaults of Options. A silent cut is noticed within Keepalive + KeepaliveTimeout, which is under 20 s.
const (
	DefaultLimit            = 30
	DefaultKeepalive        = 5 * time.Second
	DefaultKeepaliveTimeout = 12 * time.Second
	DefaultConnectTimeout   = 15 * time.Second
	DefaultLinkTimeout      = 10 * time.Minute
	DefaultRebootTimeout    = 15 * time.Minute
)

// sshd drops connections at random from the tenth unauthenticated one on (MaxStartups 10:30:100, sshd_config(5)).
const limitPerServer = 8

// Options says how a Dialer reaches hosts. The zero value works.
type Options struct {
	Run    string                                 // run ID, put into events
	Events event.Sink                             // nil: none
	Secret func(inventory.Secret) (string, error) // resolves references; nil: none may be needed

	// Trust says whether a key that no file of known hosts has is the right one; it is added there then. It is asked one thing at
	// a time, however many hosts there are. Nil: nobody can be asked.
	Trust func(*UnknownKeyError) bool

	// SSHConfig is the path of an ssh_config(5) to honour; empty: none. Host, HostName, Port, User, IdentityFile,
	// ProxyJump and UserKnownHostsFile are; what the inventory says wins.
	SSHConfig string

	Limit            int           // simultaneous handshakes; 0: DefaultLimit
	Keepalive        time.Duration // how often a host is asked for a sign of life; 0: DefaultKeepalive
	KeepaliveTimeout time.Duration // how long it may be silent then; 0: DefaultKeepaliveTimeout
	ConnectTimeout   time.Duration // for connecting and logging in, at the first attempt; 0: DefaultConnectTimeout

	// How long Reconnect tries: a host that gives no sign at all, and one that goes down or boots. 0: the defaults.
	LinkTimeout, RebootTimeout time.Duration
}

// Dialer opens SSH connections. It is safe for concurrent use.
type Dialer struct {
	opt    Options
	config func() (*clientConfig, error)
	keys   keyring

	dialTCP func(ctx context.Context, network, address string) (net.Conn, error)

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	all chan struct{} // a place for every simultaneous handshake

	mu       sync.Mutex
	servers  map[string]chan struct{} // the same per server
	bastions map[string]*conn
	dialing  singleflight.Group // of bastions

	asking  sync.Mutex      // one question at a time
	answers map[string]bool // of Trust
}

// NewDialer makes a Dialer; nothing is read or connected before the first Dial.
func NewDialer(opt Options) *Dialer {
	if opt.Events == nil {
		opt.Events = event.Discard
	}
	opt.Limit = cmp.Or(opt.Limit, DefaultLimit)
	opt.Keepalive = cmp.Or(opt.Keepalive, DefaultKeepalive)
	opt.KeepaliveTimeout = cmp.Or(opt.KeepaliveTimeout, DefaultKeepaliveTimeout)
	opt.ConnectTimeout = cmp.Or(opt.ConnectTimeout, DefaultConnectTimeout)
	opt.LinkTimeout = cmp.Or(opt.LinkTimeout, DefaultLinkTimeout)
	opt.RebootTimeout = cmp.Or(opt.RebootTimeout, DefaultRebootTimeout)
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Dialer{
		opt:      opt,
		config:   sync.OnceValues(func() (*clientConfig, error) { return loadConfig(os.DirFS("/"), opt.SSHConfig) }),
		dialTCP:  (&net.Dialer{}).DialContext,
		ctx:      ctx,
		cancel:   cancel,
		all:      make(chan struct{}, opt.Limit),
		servers:  map[string]chan struct{}{},
		bastions: map[string]*conn{},
		answers:  map[string]bool{},
	}
}

// Close ends every connection the Dialer opened, bastions too.
func (d *Dialer) Close() error {
	d.cancel(errClosed)
	return nil
}

// Dial connects to h and logs in. Errors are a *reason.Error, unless ctx ended.
func (d *Dialer) Dial(ctx context.Context, h inventory.Host) (*Host, error) {
	host := &Host{dialer: d, id: h.ID(), reconnecting: make(chan struct{}, 1)}
	var err error
	if host.target, err = d.resolve(h); err != nil {
		return nil, inHost(err, host.id)
	}
	if !h.SSH.SudoPassword.IsZero() && host.target.user != "root" {
		if host.password, err = d.secret(h.SSH.SudoPassword); err != nil {
			return nil, inHost(err, host.id)
		}
	}
	if host.conn, err = d.first(ctx, host.target, host.id); err != nil {
		return nil, inHost(err, host.id)
	}
	return host, nil
}

// secret resolves a reference to a secret.
func (d *Dialer) secret(s inventory.Secret) (string, error) {
	if d.opt.Secret == nil {
		return "", &reason.Error{ID: reason.SecretMissing, Doing: "resolving " + s.String(), Detail: "nothing resolves references to secrets"}
	}
	return d.opt.Secret(s)
}

const (
	connectTries = 5
	firstPause   = time.Second / 3
	longestPause = 10 * time.Second
	slower       = 2 // times the connect timeout is what a host gets that takes connections and is slow then
)

// first opens the first connection to a host. One that takes the connection and is slow then is asked once more, with a
// longer timeout: the kernel of a very busy host still answers at once.
func (d *Dialer) first(ctx context.Context, t *target, host string) (*conn, error) {
	begun, timeout := time.Now(), d.opt.ConnectTimeout
	c, err := d.connect(ctx, t, host, nil, timeout)
	if !errors.Is(err, errSlow) || ctx.Err() != nil {
		return c, err
	}
	wait := event.Event{Time: time.Now(), Run: d.opt.Run, Host: host, Kind: event.Wait, Reason: string(reason.SSHUnreachable)}
	wait.Text = fmt.Sprintf("for the login, which took longer than %s; giving up in %s", timeout, slower*timeout)
	d.opt.Events.Emit(wait)
	if c, err = d.connect(ctx, t, host, nil, slower*timeout); err == nil {
		wait.Time, wait.Millis, wait.Text = time.Now(), max(1, time.Since(begun).Milliseconds()), "for the login"
		d.opt.Events.Emit(wait)
	}
	return c, err
}

// connect opens a connection to t, through its bastion if it has one. An SSH server that is too busy to answer is asked
// again a few times. Where same is given, the server must have that host key.
func (d *Dialer) connect(ctx context.Context, t *target, host string, same ssh.PublicKey, timeout time.Duration) (*conn, error) {
	start := time.Now()
	for try := 1; ; try++ {
		c, err := d.attempt(ctx, t, same, timeout)
		if err == nil {
			d.opt.Events.Emit(event.Event{
				Time: time.Now(), Run: d.opt.Run, Host: host, Kind: event.Connect,
				Millis: time.Since(start).Milliseconds(), Text: t.String(),
			})
			return c, nil
		}
		trusted, wrong := d.trusted(ctx, t, err)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case wrong != nil:
			return nil, wrong
		case trusted && try < connectTries:
			continue
		}
		if try == connectTries || !errors.Is(err, errBusy) || sleep(ctx, Backoff(try, firstPause, longestPause)) != nil {
			return nil, err
		}
	}
}

// attempt waits for its turn and makes one handshake.
func (d *Dialer) attempt(ctx context.Context, t *target, same ssh.PublicKey, timeout time.Duration) (*conn, error) {
	var via *conn
	if t.via != nil {
		var err error
		if via, err = d.bastion(ctx, t.via, timeout); err != nil {
			return nil, err
		}
	}
	for _, places := range []chan struct{}{d.server(t), d.all} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if via == nil {
		return d.handshake(ctx, t, nil, same, timeout)
	}
	via.use(1)
	defer via.use(-1)
	c, err := d.handshake(ctx, t, via, same, timeout)
	if errors.Is(err, errNoAnswer) {
		d.retire(t.via, via)
	}
	return c, err
}

// retire lets the next attempt go through a new connection to the bastion t: one that answers need not forward any more.
// Those who use the old one keep it.
func (d *Dialer) retire(t *target, c *conn) {
	d.mu.Lock()
	if key := t.key(); d.bastions[key] == c {
		delete(d.bastions, key)
	}
	d.mu.Unlock()
	c.retire()
}

// server returns the places for simultaneous handshakes with t's server.
func (d *Dialer) server(t *target) chan struct{} {
	key := t.address()
	if t.via != nil {
		key += " " + t.via.key()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	places, ok := d.servers[key]
	if !ok {
		places = make(chan struct{}, limitPerServer)
		d.servers[key] = places
	}
	return places
}

// bastion returns the one connection to the bastion t, opening it when there is none that lives. The connection belongs
// to the Dialer, not to ctx: others may be waiting for it too.
func (d *Dialer) bastion(ctx context.Context, t *target, timeout time.Duration) (*conn, error) {
	key := t.key()
	result := d.dialing.DoChan(key, func() (any, error) {
		d.mu.Lock()
		c := d.bastions[key]
		d.mu.Unlock()
		if c != nil && c.alive() {
			return c, nil
		}
		c, err := d.connect(d.ctx, t, "", nil, timeout)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.bastions[key] = c
		d.mu.Unlock()
		return c, nil
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*conn), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sleep fails when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
