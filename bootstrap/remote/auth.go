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
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// sshd hangs up at the sixth refused key (MaxAuthTries 6, sshd_config(5)): a seventh is never looked at.
const (
	maxKeys   = 6
	maxOthers = 5 // keys of the agent that nobody named
)

// saidMost is how much of what a server says before anybody trusts it goes into an error.
const saidMost = 400

// usualKeys are tried when the user names none: IdentityFile in ssh_config(5), less what needs hardware.
var usualKeys = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}

// keyFiles are the files of private keys that may let kgpu in.
func (t *target) keyFiles() []string {
	if len(t.keys) > 0 {
		return t.keys
	}
	var paths []string
	for _, p := range usualKeys {
		paths = append(paths, expandHome(p))
	}
	return paths
}

// login holds the keys for one handshake and remembers what became of each.
type login struct {
	offers  []*offer
	notes   []string // keys that are not offered, and why
	allowed []string // the authentication methods that the server takes
	said    string   // the server's last word to the user
}

// newLogin collects the keys for t, in order: those the user named, the agent's copies of them, other keys of the agent;
// when none was named, the agent's and the usual files. The agent is let go when ctx ends.
func (d *Dialer) newLogin(ctx context.Context, t *target) (*login, error) {
	l := &login{}
	named := len(t.keys) > 0
	inAgent := l.askAgent(ctx, t)

	var own []*offer
	for _, path := range t.keyFiles() {
		id := d.keys.load(path, t.passphrase, d.secret)
		if unresolved, ok := errors.AsType[*reason.Error](id.err); ok {
			return nil, unresolved
		}
		if id.err != nil && (named || !errors.Is(id.err, fs.ErrNotExist)) {
			l.notes = append(l.notes, path+": "+id.trouble())
		}
		if id.signer != nil {
			own = append(own, offersOf(path, id.signers(id.signer))...)
		}
		for _, s := range inAgent {
			if id.matches(publicKey(s)) {
				own = append(own, offersOf(agentName(s), id.signers(s))...)
			}
		}
	}
	own = distinct(own)

	var others []*offer
	for _, s := range inAgent {
		others = append(others, offersOf(agentName(s), []ssh.Signer{s})...)
	}
	others = slices.DeleteFunc(others, func(o *offer) bool {
		return slices.ContainsFunc(own, func(p *offer) bool { return o.sameAs(p) })
	})
	if room := min(maxOthers, max(0, maxKeys-len(own))); len(others) > room {
		l.notes = append(l.notes, plural.Of(len(others)-room, "more key")+" in the agent: not offered, the server hangs up at the sixth (name the right one with `key:`)")
		others = others[:room]
	}
	if named {
		l.offers = slices.Concat(own, others)
	} else {
		l.offers = slices.Concat(others, own)
	}
	return l, nil
}

// askAgent returns the keys of the SSH agent.
func (l *login) askAgent(ctx context.Context, t *target) []ssh.Signer {
	socket := os.Getenv("SSH_AUTH_SOCK")
	switch {
	case !t.agent:
		return nil
	case socket == "":
		l.notes = append(l.notes, "agent: SSH_AUTH_SOCK is not set")
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		l.notes = append(l.notes, "agent: "+err.Error())
		return nil
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		l.notes = append(l.notes, "agent: "+err.Error())
	}
	return signers
}

func agentName(s ssh.Signer) string {
	if k, ok := s.PublicKey().(*agent.Key); ok && k.Comment != "" {
		return "agent key " + k.Comment
	}
	return "agent key"
}

// publicKey is the signer's public key in a form that shows certificates, which the agent's does not.
func publicKey(s ssh.Signer) ssh.PublicKey {
	if k, err := ssh.ParsePublicKey(s.PublicKey().Marshal()); err == nil {
		return k
	}
	return s.PublicKey()
}

// offer is a key that may be offered to the server.
type offer struct {
	what    string
	signer  ssh.Signer
	offered bool
	signed  bool
	err     error // of the signing
}

func offersOf(what string, signers []ssh.Signer) []*offer {
	var out []*offer
	for _, s := range signers {
		out = append(out, &offer{what: what, signer: s})
	}
	return out
}

func (o *offer) sameAs(p *offer) bool {
	return bytes.Equal(o.signer.PublicKey().Marshal(), p.signer.PublicKey().Marshal())
}

// distinct drops keys that are there before.
func distinct(offers []*offer) []*offer {
	var out []*offer
	for _, o := range offers {
		if !slices.ContainsFunc(out, o.sameAs) {
			out = append(out, o)
		}
	}
	return out
}

// String names the key and says what became of it.
func (o *offer) String() string {
	s := o.what
	switch key := publicKey(o.signer).(type) {
	case *ssh.Certificate:
		s += " (certificate of " + fingerprint(key)
		if now := uint64(time.Now().Unix()); now >= key.ValidBefore {
			s += ", expired"
		}
		s += ")"
	default:
		s += " (" + fingerprint(key) + ")"
	}
	switch {
	case o.err != nil:
		return s + ": cannot sign: " + o.err.Error()
	case o.signed:
		return s + ": known to the server, but not enough to log in"
	case o.offered:
		return s + ": refused"
	default:
		return s + ": not offered"
	}
}

// methods are for ssh.ClientConfig.Auth.
func (l *login) methods() []ssh.AuthMethod {
	if len(l.offers) == 0 {
		return nil
	}
	return []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
		var out []ssh.Signer
		for _, o := range l.offers {
			out = append(out, o.recorder())
		}
		return out, nil
	})}
}

// note is the ssh.ClientAuthCallback; it leaves the choice to ssh.ClientConfig.Auth.
func (l *login) note(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.allowed = c.AllowedMethods
	return nil, nil
}

// banner is the ssh.BannerCallback. A login that is denied by PAM is explained here: "System is booting up."
func (l *login) banner(message string) error {
	if line := lastLine(message); line != "" {
		l.said = printable.Short(line, saidMost)
	}
	return nil
}

// story tells why the login failed: what was tried, and what became of it.
func (l *login) story(err error) string {
	var b strings.Builder
	switch {
	case hungUp(err):
		b.WriteString("the server hung up during the login")
	case len(l.allowed) > 0 && !slices.Contains(l.allowed, "publickey"):
		fmt.Fprintf(&b, "the server takes no keys, only %s", printable.Short(strings.Join(l.allowed, ", "), saidMost))
	case len(l.offers) == 0:
		b.WriteString("there is no key to log in with")
	default:
		b.WriteString("the server took none of the keys")
	}
	if l.said != "" {
		fmt.Fprintf(&b, " (it says %q)", l.said)
	}
	sep := ": "
	for _, o := range l.offers {
		b.WriteString(sep + o.String())
		sep = "; "
	}
	for _, n := range l.notes {
		b.WriteString(sep + n)
		sep = "; "
	}
	return b.String()
}

// recorder wraps the key's signer so that the offer learns what happens to it. The ssh package asks for the public key
// when it offers a key, and for a signature when the server wants that key.
func (o *offer) recorder() ssh.Signer {
	r := recorder{Signer: o.signer, offer: o}
	switch s := o.signer.(type) {
	case ssh.MultiAlgorithmSigner:
		return &multiRecorder{algorithmRecorder{r, s}, s}
	case ssh.AlgorithmSigner:
		return &algorithmRecorder{r, s}
	default:
		return &r
	}
}

type recorder struct {
	ssh.Signer
	offer *offer
}

func (r *recorder) PublicKey() ssh.PublicKey {
	r.offer.offered = true
	return r.Signer.PublicKey()
}

func (r *recorder) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	sig, err := r.Signer.Sign(rand, data)
	r.offer.signed, r.offer.err = true, err
	return sig, err
}

type algorithmRecorder struct {
	recorder
	signer ssh.AlgorithmSigner
}

func (r *algorithmRecorder) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	sig, err := r.signer.SignWithAlgorithm(rand, data, algorithm)
	r.offer.signed, r.offer.err = true, err
	return sig, err
}

type multiRecorder struct {
	algorithmRecorder
	multi ssh.MultiAlgorithmSigner
}

func (r *multiRecorder) Algorithms() []string { return r.multi.Algorithms() }
