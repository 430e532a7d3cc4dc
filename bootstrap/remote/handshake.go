package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// handshake makes one connection to t and logs in, all with this timeout. It counts from when the keys are read:
// decrypting one takes a while, and somebody may have to be asked for its passphrase.
func (d *Dialer) handshake(ctx context.Context, t *target, via *conn, same ssh.PublicKey, timeout time.Duration) (*conn, error) {
	for _, path := range t.keyFiles() {
		d.keys.load(path, t.passphrase, d.secret)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	silence, within := errNoAnswer, timeout.Round(time.Millisecond)
	fail := func(id reason.ID, detail string, err error) error {
		switch {
		case caller.Err() != nil:
			return context.Cause(caller)
		case ctx.Err() != nil:
			detail, err = fmt.Sprintf("%s within %s", silence, within), fmt.Errorf("%w: %w", silence, err)
		}
		return &reason.Error{ID: id, Doing: "connecting to " + t.String(), Detail: detail, Err: err}
	}

	netConn, err := d.open(ctx, t, via)
	if err != nil {
		return nil, fail(reason.SSHUnreachable, whyNot(err), err)
	}
	silence = errSlow
	raw := watch(netConn)
	stop := context.AfterFunc(ctx, func() { raw.Close() }) // also when this fails

	hostKeys, unfit := newHostKeys(t, same)
	if unfit != nil {
		unfit.Doing = "connecting to " + t.String()
		return nil, unfit
	}
	login, err := d.newLogin(ctx, t)
	if err != nil {
		return nil, err
	}

	safe := ssh.SupportedAlgorithms() // the package's defaults offer a little more
	sshConn, channels, requests, err := ssh.NewClientConn(raw, t.address(), &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: safe.KeyExchanges, Ciphers: safe.Ciphers, MACs: safe.MACs},
		User:              t.user,
		Auth:              login.methods(),
		AuthCallback:      login.note,
		HostKeyCallback:   hostKeys.check,
		HostKeyAlgorithms: hostKeys.algorithms,
		BannerCallback:    login.banner,
		ClientVersion:     "SSH-2.0-kgpu",
	})
	seen, unfit := hostKeys.verdict()
	switch {
	case err == nil && stop():
		client := ssh.NewClient(sshConn, channels, requests)
		return newConn(d.ctx, client, raw, via, seen, d.opt.Keepalive, d.opt.KeepaliveTimeout), nil
	case err == nil:
		sshConn.Close()
		return nil, fail(reason.SSHUnreachable, "", ctx.Err())
	case unfit != nil && caller.Err() == nil:
		unfit.Doing = "connecting to " + t.String()
		return nil, unfit
	case seen != nil && ctx.Err() == nil:
		return nil, fail(reason.SSHAuthFailed, login.story(err), err)
	case ctx.Err() == nil && hungUp(err):
		busy := fail(reason.SSHUnreachable, errBusy.Error(), fmt.Errorf("%w: %w", errBusy, err))
		if e, ok := busy.(*reason.Error); ok {
			e.Advice = "something listens there and lets nobody speak: see the server's log (`journalctl -u ssh` on the host), its `MaxStartups`, fail2ban or `ufw limit`, and whether the port is that of SSH"
		}
		return nil, busy
	default:
		return nil, fail(reason.SSHUnreachable, whyNot(err), err)
	}
}

// open makes the TCP connection to t.
func (d *Dialer) open(ctx context.Context, t *target, via *conn) (net.Conn, error) {
	if via == nil {
		return d.dialTCP(ctx, "tcp", t.address())
	}
	c, err := openTunnel(ctx, via, t.address())
	if err != nil && ctx.Err() == nil && via.diedWith(err) {
		return nil, fmt.Errorf("%w: %w", errBusy, via.lost(err)) // the bastion died since: worth another try
	}
	return c, err
}

// whyNot says in a few words why a connection could not be made.
func whyNot(err error) string {
	var refused *ssh.OpenChannelError
	var algorithms *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &algorithms):
		return fmt.Sprintf("the server has no %s that is safe: it offers %s", algorithms.What, printable.Short(strings.Join(algorithms.RequestedAlgorithms, ", "), saidMost))
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		return "the bastion does not allow TCP forwarding to there"
	case errors.As(err, &refused):
		return "the bastion cannot reach it: " + printable.Short(refused.Message, saidMost)
	default:
		return printable.Short(strings.TrimPrefix(err.Error(), "ssh: handshake failed: "), saidMost)
	}
}

// hungUp reports whether err is the end of a connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
