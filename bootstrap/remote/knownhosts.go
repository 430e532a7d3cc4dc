package remote

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// addKnownHost appends address (host:port) with key to a known_hosts file, hashed if the file has hashed entries. The
// file is locked meanwhile; whoever was faster and added another key for the address makes it fail.
func addKnownHost(path, address string, key ssh.PublicKey) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	known, err := readKnownHosts([]string{path})
	if err != nil {
		return err
	}
	if keys := known.HostKeys(address); len(keys) > 0 {
		for _, k := range keys {
			if sameKey(k, key) {
				return nil
			}
		}
		return fmt.Errorf("%s was just added to %s with the key %s", address, path, fingerprint(keys[0]))
	}

	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name := xknownhosts.Normalize(address)
	if hasHashed(data) {
		name = xknownhosts.HashHostname(name)
	}
	line := name + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(plainKey(key)))) + "\n"
	if len(data) > 0 && data[len(data)-1] != '\n' {
		line = "\n" + line
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Sync(), f.Close())
}

// hashedMark begins a hashed host name: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
var hashedMark = []byte("|1|")

func hasHashed(data []byte) bool {
	return bytes.HasPrefix(data, hashedMark) || bytes.Contains(data, append([]byte("\n"), hashedMark...))
}
