package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// namesOfKnownHosts are in the name of every file of known hosts that kgpu makes.
var namesOfKnownHosts = []string{"known_hosts", "known-hosts", "knownhosts"}

// mayMake says why a file that is missing is not made: its path comes from an inventory, and a line of known_hosts means
// something else in other files. Where a link leads to nothing, the file's name is not the one that is made.
func mayMake(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	base := strings.ToLower(filepath.Base(path))
	named := slices.ContainsFunc(namesOfKnownHosts, func(name string) bool { return strings.Contains(base, name) })
	if _, err := os.Lstat(path); err == nil || !named {
		return fmt.Errorf("%s does not exist, and kgpu makes no file of host keys that does not have known_hosts in its name", path)
	}
	return nil
}

// addKnownHost appends address (host:port) with key to a known_hosts file. The file is locked meanwhile; whoever was faster
// and added another key for the address makes it fail.
func addKnownHost(path, address string, key ssh.PublicKey) (err error) {
	if err := mayMake(path); err != nil {
		return err
	}
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
	line := entryName(address, hasHashed(data)) + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(plainKey(key)))) + "\n"
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

// entryName is the name of a host in known_hosts, hashed if the file has hashed entries. A name of one word is hashed, too:
// in authorized_keys it could be an option, such as pty, and let the host's key log in (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
func entryName(address string, hashed bool) string {
	name := xknownhosts.Normalize(address)
	if hashed || !strings.ContainsAny(name, ".:[") {
		return xknownhosts.HashHostname(name)
	}
	return name
}

// hashedMark begins a hashed host name: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
var hashedMark = []byte("|1|")

func hasHashed(data []byte) bool {
	return bytes.HasPrefix(data, hashedMark) || bytes.Contains(data, append([]byte("\n"), hashedMark...))
}
