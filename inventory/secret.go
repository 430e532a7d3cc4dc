package inventory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Secret is a reference to a secret: an environment variable (${NAME}) or a file (file:PATH). The secret itself never is in the inventory.
type Secret struct{ ref string }

// IsZero reports whether no secret is referred to.
func (s Secret) IsZero() bool { return s.ref == "" }

// String returns the reference, never the secret.
func (s Secret) String() string { return s.ref }

const filePrefix = "file:"

var (
	environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	secretReference = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$|^file:.+$`)
)

// ParseSecret reads a reference to a secret. Its error does not repeat s, which may be a secret somebody wrote by mistake.
func ParseSecret(s string) (Secret, error) {
	if !secretReference.MatchString(s) {
		return Secret{}, errors.New("must be a reference, ${NAME} or file:PATH: secrets are not written into the inventory")
	}
	return Secret{s}, nil
}

// Resolve returns the secret. getenv is os.LookupEnv, readFile is ReadSecret or the like; one line end at the end of a
// file is dropped. Errors have the reason SECRET_MISSING and never carry the secret.
func (s Secret) Resolve(getenv func(string) (string, bool), readFile func(string) ([]byte, error)) (string, error) {
	missing := func(detail string, err error) error {
		return &reason.Error{ID: reason.SecretMissing, Doing: "resolving " + s.ref, Detail: detail, Err: err}
	}
	if path, ok := strings.CutPrefix(s.ref, filePrefix); ok {
		data, err := readFile(path)
		if err != nil {
			return "", missing("", err)
		}
		value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
		if value == "" {
			return "", missing("the file is empty", nil)
		}
		return value, nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(s.ref, "${"), "}")
	if !environmentName.MatchString(name) {
		return "", missing("no secret is referred to", nil)
	}
	value, ok := getenv(name)
	switch {
	case !ok:
		return "", missing(fmt.Sprintf("the environment variable %s is not set", name), nil)
	case value == "":
		return "", missing(fmt.Sprintf("the environment variable %s is empty", name), nil)
	}
	return value, nil
}

// MarshalText returns the reference, never the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.ref), nil }

// othersMayRead are the bits of a file's mode that let its group or everybody read it.
const othersMayRead fs.FileMode = 0o044

// ReadSecret reads the file of a secret. It must be the user's own, or root's, and nobody else may read it: an inventory
// that somebody else wrote could name any file, and a secret that others can read is none.
func ReadSecret(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := private(path, info, os.Geteuid()); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// checkSecretFile says why the file of a secret is refused. One that cannot be looked at is none of a validation's business:
// the inventory may be checked on another machine than the one that has the secrets.
func checkSecretFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return private(path, info, os.Geteuid())
}

// private says why a file is not one that only this user can read.
func private(path string, info fs.FileInfo, euid int) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a folder", path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int64(stat.Uid) != int64(euid) {
		return fmt.Errorf("%s belongs to the user with the ID %d: a secret is read only from a file of your own; copy it to one, `chmod 600` that, and name it here", path, stat.Uid)
	}
	if mode := info.Mode().Perm(); mode&othersMayRead != 0 {
		return fmt.Errorf("%s can be read by others, its mode is %04o: `chmod 600 %s`", path, mode, path)
	}
	return nil
}
