package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"kgpu.dev/kgpu/scripts/lab/internet"
	"kgpu.dev/kgpu/scripts/lab/place"
)

// address is this test's own: the lab's bridges have others.
var address = netip.MustParseAddr("127.99.0.1")

// lab is the lab's internet with what a test adds to it.
type lab struct {
	t      *testing.T
	place  place.Place
	signer *openpgp.Entity
	world  world
}

func newLab(t *testing.T) *lab {
	p, err := place.New("outside")
	if err != nil {
		t.Fatal(err)
	}
	p.State, p.Extra = t.TempDir(), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- internet.Serve(ctx, internet.Options{Place: p, Listen: []netip.Addr{address}, Log: io.Discard})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	l := &lab{t: t, place: p, signer: readKey(t, filepath.Join(p.PKI(), "signing.gpg"))}
	authority, err := os.ReadFile(filepath.Join(p.PKI(), "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	dialer := net.Dialer{}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(to)
			return dialer.DialContext(ctx, network, net.JoinHostPort(address.String(), port))
		},
		ResponseHeaderTimeout: 5 * time.Second, // what hangs in this test hangs for good
	}
	l.world = world{client: &http.Client{Transport: transport}, also: []string{fingerprint(l.signer)}}
	return l
}

func readKey(t *testing.T, file string) *openpgp.Entity {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	keys, err := openpgp.ReadKeyRing(f)
	if err != nil {
		t.Fatal(err)
	}
	return keys[0]
}

// fault makes requests fail: WHERE and WORDS as `lab fault` takes them.
func (l *lab) fault(where, words string) {
	f, err := internet.ParseFault(where, words)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := (internet.Faults{File: l.place.Faults()}).Add(f); err != nil {
		l.t.Fatal(err)
	}
}

// put serves other bytes at an address.
func (l *lab) put(where string, data []byte) {
	file := filepath.Join(l.place.Extra, "www", where)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// change serves a flat repository with another Packages file, signed.
func (l *lab) change(where string, edit func(string) string) {
	packages, err := os.ReadFile(filepath.Join(l.place.Cache, "www", where, "Packages"))
	if err != nil {
		l.t.Fatal(err)
	}
	text := edit(string(packages))
	if text == string(packages) {
		l.t.Fatalf("the edit of %s changes nothing", where)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	must(l.t, w.Write, []byte(text))
	if err := w.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.put(where+"/Packages.gz", packed.Bytes())
	l.put(where+"/InRelease", l.sign(fmt.Sprintf("Suite: test\nSHA256:\n %x %d Packages.gz\n", sha256.Sum256(packed.Bytes()), packed.Len())))
}

func (l *lab) sign(text string) []byte {
	var out bytes.Buffer
	w, err := clearsign.Encode(&out, l.signer.PrivateKey, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	must(l.t, w.Write, []byte(text))
	if err := w.Close(); err != nil {
		l.t.Fatal(err)
	}
	return out.Bytes()
}

func must(t *testing.T, write func([]byte) (int, error), data []byte) {
	if _, err := write(data); err != nil {
		t.Fatal(err)
	}
}

// armored is the public half of a key. A lifetime that is not zero is that of the key, from its making on.
func (l *lab) armored(key *openpgp.Entity, lifetime time.Duration) []byte {
	if lifetime > 0 {
		seconds := uint32(lifetime.Seconds())
		id := key.PrimaryIdentity()
		id.SelfSignature.KeyLifetimeSecs = &seconds
		if err := id.SelfSignature.SignUserId(id.UserId.Id, key.PrimaryKey, key.PrivateKey, nil); err != nil {
			l.t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := key.Serialize(w); err != nil {
		l.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		l.t.Fatal(err)
	}
	return out.Bytes()
}

// survey is every row of what is asked of a network by its id, with state and words.
func (l *lab) survey() map[string]string {
	out := map[string]string{}
	for _, r := range survey(l.t.Context(), l.world, time.Now()) {
		if have, twice := out[r.id()]; twice {
			l.t.Errorf("two rows for %s: %s, and %s %s", r.id(), have, r.state, r.found)
		}
		out[r.id()] = r.state.String() + " " + r.found
	}
	return out
}
