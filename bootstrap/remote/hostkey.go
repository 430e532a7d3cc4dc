package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// hostKeys decides whether a server is the one it should be.
type hostKeys struct {
	target *target
	same   ssh.PublicKey // what an earlier connection saw; nil: nothing
	pinned ssh.PublicKey // from the inventory; nil: known_hosts decides
	known  *knownhosts.HostKeyDB

	algorithms []string // to ask the server for, those of known keys first

	mu      sync.Mutex    // the ssh package may call check while nobody waits for it any more
	seen    ssh.PublicKey // the server's, once it was accepted
	failure *reason.Error // why it was not
}

func newHostKeys(t *target, same ssh.PublicKey) (*hostKeys, *reason.Error) {
	h := &hostKeys{target: t, same: same}
	var prefer []string
	if t.pinned != "" {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(t.pinned))
		if err != nil {
			return nil, &reason.Error{ID: reason.InventoryInvalid, Detail: "`hostKey:` is not a public key: " + err.Error(), Err: err}
		}
		h.pinned = key
		prefer = algorithmsOf(key)
	} else {
		var err error
		if h.known, err = readKnownHosts(t.knownHosts); err != nil {
			return nil, &reason.Error{ID: reason.SSHHostKeyUnknown, Err: err, Advice: "correct that known_hosts file"}
		}
		prefer = h.known.HostKeyAlgorithms(t.address())
	}
	if same != nil {
		prefer = append(algorithmsOf(same), prefer...)
	}
	h.algorithms = preferred(prefer)
	return h, nil
}

// readKnownHosts reads the files that exist.
func readKnownHosts(paths []string) (*knownhosts.HostKeyDB, error) {
	var exist []string
	for _, p := range paths {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			exist = append(exist, p)
		}
	}
	return knownhosts.NewDB(exist...)
}

// asSSH are the algorithms in the order in which OpenSSH asks for them: a key that is new to kgpu is the one that ssh shows.
var asSSH = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}

// preferred puts the algorithms of known keys first, so that a server with several keys shows the one we know. Host
// certificates are asked for only where an authority is known; algorithms that are not safe any more are not asked for.
func preferred(known []string) []string {
	supported := ssh.SupportedAlgorithms().HostKeys
	out := slices.DeleteFunc(known, func(a string) bool { return !slices.Contains(supported, a) })
	for _, a := range slices.Concat(asSSH, supported) {
		if slices.Contains(supported, a) && !slices.Contains(out, a) && !strings.Contains(a, "-cert-") {
			out = append(out, a)
		}
	}
	return out
}

func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// check is the ssh.HostKeyCallback.
func (h *hostKeys) check(address string, remote net.Addr, key ssh.PublicKey) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure = h.judge(address, remote, key); h.failure != nil {
		return h.failure
	}
	h.seen = key
	return nil
}

// verdict returns the key that was accepted, or why it was not; neither when the server did not show one.
func (h *hostKeys) verdict() (ssh.PublicKey, *reason.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen, h.failure
}

func (h *hostKeys) judge(address string, remote net.Addr, key ssh.PublicKey) *reason.Error {
	if h.pinned != nil {
		if !sameKey(h.pinned, key) {
			return mismatch(key, "the inventory pins "+fingerprint(h.pinned), "")
		}
	} else if e := h.lookUp(address, remote, key); e != nil {
		return e
	}
	if h.same != nil && !sameKey(h.same, key) {
		return mismatch(key, "it had "+fingerprint(h.same)+" when this run began", "")
	}
	return nil
}

// lookUp asks known_hosts, and adds the key there if that is the policy.
func (h *hostKeys) lookUp(address string, remote net.Addr, key ssh.PublicKey) *reason.Error {
	err := h.known.HostKeyCallback()(address, remote, key)
	var keyErr *xknownhosts.KeyError
	var revoked *xknownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return mismatch(key, fmt.Sprintf("%s:%d revokes this key", revoked.Revoked.Filename, revoked.Revoked.Line), "")
	case errors.As(err, &keyErr) && len(keyErr.Want) > 0:
		var want []string
		for _, k := range keyErr.Want {
			want = append(want, fmt.Sprintf("%s (%s:%d)", fingerprint(k.Key), k.Filename, k.Line))
		}
		return mismatch(key, "known is "+strings.Join(want, ", "),
			fmt.Sprintf("somebody may be in between. If the machine was reinstalled, compare with its own `ssh-keygen -lf /etc/ssh/ssh_host_%s_key.pub`, then `ssh-keygen -R %q -f %s`",
				keyFile(key), xknownhosts.Normalize(address), keyErr.Want[0].Filename))
	case errors.As(err, &keyErr) && h.target.policy == inventory.AcceptNew:
		return addTrusted(h.target, address, key)
	case errors.As(err, &keyErr):
		return &reason.Error{
			ID:     reason.SSHHostKeyUnknown,
			Err:    &UnknownKeyError{Server: h.target.String(), Key: plainKey(key), Bastion: h.target.bastion, Address: xknownhosts.Normalize(address), KnownHosts: h.target.knownHosts[0], target: h.target},
			Detail: fmt.Sprintf("the host key %s is not known: no line for %s in %s", fingerprint(key), xknownhosts.Normalize(address), strings.Join(h.target.knownHosts, ", ")),
			Advice: fmt.Sprintf("compare the fingerprint with the machine's own (`ssh-keygen -lf /etc/ssh/ssh_host_%s_key.pub`), then run the same command on a terminal, which asks, or add the machine to known_hosts, or under `ssh:` in the inventory pin `hostKey: %q`, or set `hostKeyPolicy: accept-new`",
				keyFile(key), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))),
		}
	default:
		return &reason.Error{ID: reason.SSHHostKeyUnknown, Err: err}
	}
}

// UnknownKeyError is the cause of an error SSH_HOST_KEY_UNKNOWN: the key that a server showed, which is known to nobody here.
type UnknownKeyError struct {
	Server  string // user@host:port
	Key     ssh.PublicKey
	Bastion bool // the server is one on the way to the host

	Address    string // as known_hosts has it: host, or [host]:port
	KnownHosts string // path of the file that a trusted key goes to
	target     *target
}

// Error names the server and its key by its fingerprint.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("%s has the unknown host key %s", e.Server, e.Fingerprint())
}

// Fingerprint is the key's type and SHA-256, as ssh-keygen -l prints it.
func (e *UnknownKeyError) Fingerprint() string { return fingerprint(e.Key) }

// Line is the key as the inventory pins it.
func (e *UnknownKeyError) Line() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(e.Key)))
}

// File is where the server itself has the key, as OpenSSH names its files.
func (e *UnknownKeyError) File() string { return "/etc/ssh/ssh_host_" + keyFile(e.Key) + "_key.pub" }

// Type is the key's type as ssh says it: ED25519.
func (e *UnknownKeyError) Type() string { return strings.ToUpper(keyFile(e.Key)) }

// SHA256 is the fingerprint without the type.
func (e *UnknownKeyError) SHA256() string { return ssh.FingerprintSHA256(e.Key) }

// trusted asks, one question at a time, whether a key that nobody here knows is the right one, and adds it to known_hosts. It
// reports whether the server may be spoken to now; what was answered once is not asked again.
func (d *Dialer) trusted(ctx context.Context, t *target, err error) (bool, error) {
	unknown, ok := errors.AsType[*UnknownKeyError](err)
	if d.opt.Trust == nil || !ok || unknown.target != t {
		return false, nil
	}
	d.asking.Lock()
	defer d.asking.Unlock()
	question := unknown.Address + " " + unknown.Fingerprint() + " " + unknown.KnownHosts
	yes, asked := d.answers[question]
	if !asked {
		if ctx.Err() != nil {
			return false, nil
		}
		yes = d.opt.Trust(unknown)
		d.answers[question] = yes
	}
	if !yes {
		return false, nil
	}
	if err := addTrusted(t, t.address(), unknown.Key); err != nil {
		err.Doing = "connecting to " + t.String()
		return false, err
	}
	return true, nil
}

// addTrusted adds a server's key to the first of its files of known hosts.
func addTrusted(t *target, address string, key ssh.PublicKey) *reason.Error {
	if err := addKnownHost(t.knownHosts[0], address, key); err != nil {
		return &reason.Error{ID: reason.SSHHostKeyUnknown, Err: err, Advice: "see that `knownHosts:` names a file of known hosts, and that it can be written"}
	}
	return nil
}

func mismatch(offered ssh.PublicKey, but, advice string) *reason.Error {
	return &reason.Error{
		ID:     reason.SSHHostKeyMismatch,
		Detail: fmt.Sprintf("the server has the host key %s, but %s", fingerprint(offered), but),
		Advice: advice,
	}
}

// sameKey compares keys; a certificate counts as the key in it.
func sameKey(a, b ssh.PublicKey) bool {
	return bytes.Equal(plainKey(a).Marshal(), plainKey(b).Marshal())
}

func plainKey(k ssh.PublicKey) ssh.PublicKey {
	if cert, ok := k.(*ssh.Certificate); ok {
		return cert.Key
	}
	return k
}

// fingerprint is the key's type and SHA-256, as ssh-keygen -l prints it.
func fingerprint(k ssh.PublicKey) string {
	return plainKey(k).Type() + " " + ssh.FingerprintSHA256(plainKey(k))
}

// keyFile is the word in the name of the server's key file.
func keyFile(k ssh.PublicKey) string {
	switch t := plainKey(k).Type(); {
	case t == ssh.KeyAlgoRSA:
		return "rsa"
	case strings.HasPrefix(t, "ecdsa-"):
		return "ecdsa"
	default:
		return "ed25519"
	}
}
