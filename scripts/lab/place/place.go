// Package place says where a lab keeps its things: the cache that all labs of
// a machine share, one lab's state, and the tester's own artefacts.
package place

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// DefaultName is the lab that is meant when none is named.
const DefaultName = "lab"

// Place is where one lab lives. All paths are absolute.
type Place struct {
	Name  string // the lab's name
	Cache string // base systems, binaries, sites, images, keys: shared by all labs
	State string // this lab's hosts, logs and records
	Extra string // debs, images and sites that a tester adds
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,15}$`)

// New returns the place of the lab called name; an empty name means
// $KGPU_LAB_NAME, then DefaultName. KGPU_LAB_CACHE, KGPU_LAB_STATE (the folder
// of all labs' states) and KGPU_LAB_EXTRA move the parts elsewhere.
func New(name string) (Place, error) {
	if name == "" {
		name = envOr("KGPU_LAB_NAME", DefaultName)
	}
	if !validName.MatchString(name) {
		return Place{}, fmt.Errorf("lab name %q: want a lower-case letter, then up to 15 of a-z, 0-9 and -", name)
	}
	p := Place{Name: name, Cache: envOr("KGPU_LAB_CACHE", "/var/cache/kgpu-lab")}
	p.State = filepath.Join(envOr("KGPU_LAB_STATE", "/var/lib/kgpu-lab"), name)
	p.Extra = envOr("KGPU_LAB_EXTRA", filepath.Join(p.Cache, "extra"))
	for _, dir := range []*string{&p.Cache, &p.State, &p.Extra} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return Place{}, err
		}
		*dir = abs
	}
	return p, nil
}

func envOr(key, fallback string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return fallback
}

// Base is the root file system of a base kind, such as "trixie".
func (p Place) Base(kind string) string { return filepath.Join(p.Cache, "base", kind) }

// Bin is the folder of a built program's version.
func (p Place) Bin(name, version string) string { return filepath.Join(p.Cache, "bin", name, version) }

// Site is the static site of a host name on the lab's internet.
func (p Place) Site(host string) string { return filepath.Join(p.Cache, "www", host) }

// Registry holds the blobs and manifests of the lab's registry.
func (p Place) Registry() string { return filepath.Join(p.Cache, "registry") }

// PKI holds the lab's certificate authority and signing keys.
func (p Place) PKI() string { return filepath.Join(p.Cache, "pki") }

// ClientKey is the private key that logs in to every host; its public half
// lies beside it with the suffix ".pub".
func (p Place) ClientKey() string { return filepath.Join(p.Cache, "keys", "id_ed25519") }

// Names lists every host name that the lab's internet answers for, one a line.
func (p Place) Names() string { return filepath.Join(p.Cache, "names") }

// Faults is the file with what goes wrong in this lab's internet.
func (p Place) Faults() string { return filepath.Join(p.State, "faults.json") }

// Root is the folder that holds this lab's state and those of its neighbours.
func (p Place) Root() string { return filepath.Dir(p.State) }

// Host is the folder of one host's files.
func (p Place) Host(name string) string { return filepath.Join(p.State, "hosts", name) }

// KnownHosts is the ssh known_hosts file of this lab's hosts.
func (p Place) KnownHosts() string { return filepath.Join(p.State, "known_hosts") }

// SSHConfig is an ssh client configuration with an entry for each host.
func (p Place) SSHConfig() string { return filepath.Join(p.State, "ssh_config") }

// Password is the file with the password that sudo wants on the host password1.
func (p Place) Password() string { return filepath.Join(p.State, "password") }
