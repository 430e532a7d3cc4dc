package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// ahead is how long before its end a key is said to be aged: as early as `kgpu doctor` warns.
const ahead = 60 * 24 * time.Hour

// key fetches a repository's key and compares it with the fingerprints that the catalog allows, once for all repositories that it
// signs. It returns those that are allowed; nil: there is none.
func (s *surveyor) key(ctx context.Context, name, url string, fingerprints []string) openpgp.EntityList {
	s.lock.Lock()
	once, asked := s.keys[url]
	if !asked {
		once = sync.OnceValue(func() openpgp.EntityList {
			keys, r := s.fetchKey(ctx, url, fingerprints)
			r.name, r.where = "key of "+name, url
			s.add(r)
			return keys
		})
		s.keys[url] = once
	}
	s.lock.Unlock()
	return once()
}

func (s *surveyor) fetchKey(ctx context.Context, url string, fingerprints []string) (openpgp.EntityList, row) {
	data, err := s.get(ctx, url)
	if err != nil {
		return nil, row{state: dead, found: err.Error()}
	}
	keys, err := readKeys(data)
	if err != nil {
		return nil, row{state: changed, found: "this is no key: " + err.Error()}
	}
	var allowed openpgp.EntityList
	for _, k := range keys {
		if slices.Contains(fingerprints, fingerprint(k)) || slices.Contains(s.also, fingerprint(k)) {
			allowed = append(allowed, k)
		}
	}
	if allowed == nil {
		return nil, row{state: changed, found: "the key is " + fingerprint(keys[0])}
	}
	if end := ends(allowed); !end.IsZero() && end.Before(s.now.Add(ahead)) {
		return allowed, row{state: aged, found: "the key ends on " + end.Format(time.DateOnly)}
	}
	return allowed, row{}
}

func readKeys(data []byte) (openpgp.EntityList, error) {
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(data))
	if err == nil && len(keys) == 0 {
		err = errors.New("it holds none")
	}
	return keys, err
}

func fingerprint(e *openpgp.Entity) string { return fmt.Sprintf("%X", e.PrimaryKey.Fingerprint) }

// ends is when the first of the keys, or of the subkeys that sign, ends to be valid; zero: never.
func ends(keys openpgp.EntityList) time.Time {
	var first time.Time
	end := func(key *packet.PublicKey, s *packet.Signature) {
		if s == nil || s.KeyLifetimeSecs == nil || *s.KeyLifetimeSecs == 0 {
			return
		}
		if t := key.CreationTime.Add(time.Duration(*s.KeyLifetimeSecs) * time.Second); first.IsZero() || t.Before(first) {
			first = t
		}
	}
	for _, e := range keys {
		if id := e.PrimaryIdentity(); id != nil {
			end(e.PrimaryKey, id.SelfSignature)
		}
		for _, sub := range e.Subkeys {
			if sub.Sig != nil && sub.Sig.FlagSign {
				end(sub.PublicKey, sub.Sig)
			}
		}
	}
	return first
}

// signed returns the text that a repository's InRelease holds, when one of the keys signed it.
func signed(data []byte, keys openpgp.EntityList, now time.Time) ([]byte, error) {
	block, _ := clearsign.Decode(data)
	if block == nil {
		return nil, errors.New("this is no signed Release")
	}
	config := &packet.Config{Time: func() time.Time { return now }}
	_, err := openpgp.CheckDetachedSignature(keys, bytes.NewReader(block.Bytes), block.ArmoredSignature.Body, config)
	if errors.Is(err, pgperrors.ErrKeyExpired) { // the key's own row says so
		err = nil
	}
	return block.Plaintext, err
}
