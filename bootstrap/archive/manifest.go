// Package archive is the file of a backup: it is written in one pass, checked as a whole, and read again.
//
// It is a gzipped tar, encrypted to age recipients if there are any. Its last entries are the manifest, which has the size and the
// SHA-256 sum of all that comes before, and the sum of the manifest: they find damage by accident. Who could change an archive on purpose
// could change the sums, too, unless it is encrypted: age authenticates every byte.
package archive

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Format is the version of the layout of archives that this kgpu writes. It reads those up to this one.
const Format = 1

// Names of the entries.
const (
	Snapshot     = "etcd.db"        // of etcd
	PlaneFiles   = "files.tar"      // keys, certificates and settings of a control plane
	Inventory    = "inventory.yaml" // as the file was
	manifestName = "manifest.json"
	sumName      = "manifest.json.sha256"
)

// Ledger is the name of the entry with a host's ledger.
func Ledger(host string) string { return "hosts/" + host + "/ledger.tar" }

// Manifest says what an archive has, and of which cluster.
type Manifest struct {
	Format     int       `json:"format"`
	Kgpu       string    `json:"kgpu"` // the version that wrote it
	Made       time.Time `json:"made"`
	Cluster    string    `json:"cluster"`    // its name
	CA         string    `json:"ca"`         // hexadecimal SHA-256 of the public key of its CA, by which it is known
	Kubernetes string    `json:"kubernetes"` // version
	Etcd       string    `json:"etcd"`       // version
	Endpoint   string    `json:"endpoint"`   // host:port by which nodes reach the API server
	Encrypted  bool      `json:"encrypted"`  // Secrets are encrypted in etcd; the key is among the files of the control plane
	Settings   Settings  `json:"settings"`
	Revision   int64     `json:"revision"` // of etcd
	Keys       int64     `json:"keys"`     // in etcd
	Hosts      []Host    `json:"hosts"`
	Files      []File    `json:"files"`
}

// Settings are what the cluster was made with and cannot change.
type Settings struct {
	Runtime     string `json:"runtime"`
	Network     string `json:"network"`
	PodCIDR     string `json:"podCIDR"`
	ServiceCIDR string `json:"serviceCIDR"`
}

// Host is a host of the inventory when the backup was made.
type Host struct {
	ID      string `json:"id"`
	Address string `json:"address"` // in the cluster; of one that did not answer, as the inventory has it
	Role    string `json:"role"`
	Node    string `json:"node,omitempty"` // empty: it did not answer
}

// File is an entry of the archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// Find returns the file of this name.
func (m Manifest) Find(name string) (File, bool) {
	i := slices.IndexFunc(m.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return File{}, false
	}
	return m.Files[i], true
}

var hexSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseManifest reads a manifest. What it cannot be is damage; a newer format is told as such before anything else of it is looked at.
func parseManifest(text []byte) (m Manifest, err error) {
	var head struct {
		Format int    `json:"format"`
		Kgpu   string `json:"kgpu"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, damaged("its manifest cannot be read: %v", err)
	}
	if head.Format > Format {
		return m, newer(head.Format, head.Kgpu)
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return m, damaged("its manifest cannot be read")
	}
	for _, name := range []string{Snapshot, PlaneFiles} {
		if _, ok := m.Find(name); !ok {
			return m, damaged("it has no %s", name)
		}
	}
	for _, f := range m.Files {
		if !hexSum.MatchString(f.SHA256) || f.Size < 0 {
			return m, damaged("its manifest has no sum of %q", f.Name)
		}
	}
	if !hexSum.MatchString(m.CA) || m.Cluster == "" {
		return m, damaged("its manifest does not say of which cluster it is")
	}
	return m, nil
}

// Name is how the archive of a cluster is called by default.
func Name(cluster string, now time.Time, encrypted bool) string {
	ending := ".tar.gz"
	if encrypted {
		ending += ".age"
	}
	return fmt.Sprintf("kgpu-backup-%s-%s%s", cluster, now.UTC().Format("20060102-150405Z"), ending)
}
