package inventory

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

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
