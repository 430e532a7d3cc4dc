package records

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/records/support"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// What a bundle takes of what runs left on this machine.
const (
	bundleRuns  = 3        // the newest one, and the newest ones in which steps began
	bundleBytes = 16 << 20 // all their files together
)

// CreateBundle begins the support bundle of a cluster: an archive of this name or, where that is empty, of one after the cluster
// and the time in the working directory.
func CreateBundle(inv *inventory.Inventory, name string, now time.Time) (bundle *support.Bundle, file string, err error) {
	top := support.Name(inv.Cluster, now)
	file = cmp.Or(name, top+".tar.gz")
	bundle, err = support.Create(file, top, now, support.NewScrubber(secretsOf(inv)...))
	switch {
	case errors.Is(err, fs.ErrExist):
		err = reason.Usagef("%s is there already, and stays as it is: name another file with --file", file)
	case err != nil:
		err = reason.Usagef("the bundle cannot be written: %v; name another file with --file", err)
	}
	return bundle, file, err
}

// secretsOf is what the inventory refers to, by value: passwords and passphrases that can be resolved here, and the
// passwords of proxies.
func secretsOf(inv *inventory.Inventory) []string {
	var out []string
	for _, h := range inv.Hosts {
		for b := (&inventory.Bastion{SSH: h.SSH}); b != nil; b = b.SSH.Bastion {
			for _, ref := range []inventory.Secret{b.SSH.SudoPassword, b.SSH.Passphrase} {
				if value, err := ref.Resolve(os.LookupEnv, inventory.ReadSecret); err == nil {
					out = append(out, value)
				}
			}
		}
	}
	for _, proxy := range []string{inv.Proxy.HTTP, inv.Proxy.HTTPS} {
		if u, err := url.Parse(proxy); err == nil {
			if password, ok := u.User.Password(); ok {
				out = append(out, password)
			}
		}
	}
	return out
}

// AddRuns puts what the last runs left on this machine into the bundle, and says what that is. What cannot be read is said,
// too, and stops nothing.
func AddRuns(inv *inventory.Inventory, bundle *support.Bundle) (about string, err error) {
	runs, err := list(inv.Cluster)
	if err != nil {
		return "runs: " + err.Error() + "\n", nil
	}
	runs = slices.DeleteFunc(runs, func(r history.Run) bool { return ofAnother(r, inv) })
	if len(runs) == 0 {
		return "runs: none is recorded on this machine\n", nil
	}
	runs = slices.Concat(runs[:1], slices.DeleteFunc(runs[1:], func(r history.Run) bool { return !r.Stepped() }))
	var b strings.Builder
	room := bundleBytes
	for _, r := range runs[:min(len(runs), bundleRuns)] {
		name := filepath.Base(r.Folder)
		entries, left := support.ReadFolder(r.Folder, &room)
		fmt.Fprintf(&b, "run %s: %s, %s: %s\n", name, r.Command, r.State, plural.Of(len(entries), "file"))
		for _, what := range left {
			fmt.Fprintf(&b, "  %s\n", what)
		}
		for _, e := range entries {
			if err := bundle.Add(path.Join("runs", support.Folder(name), e.Name), e.Content); err != nil {
				return "", fmt.Errorf("writing the bundle: %w", err)
			}
		}
	}
	return b.String(), nil
}

// ofAnother reports whether a run was of another inventory whose cluster has the same name.
func ofAnother(r history.Run, inv *inventory.Inventory) bool {
	was, err := os.Stat(r.Inventory)
	if err != nil { // it is not known, or was moved
		return false
	}
	is, err := os.Stat(inv.Path)
	return err == nil && !os.SameFile(was, is)
}
