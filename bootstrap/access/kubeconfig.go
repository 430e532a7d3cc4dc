package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
)

const adminConf = "/etc/kubernetes/admin.conf"

// KubeconfigPath is where the admin kubeconfig of the cluster goes unless somebody says otherwise: beside the inventory.
func KubeconfigPath(inv *inventory.Inventory) string {
	return filepath.Join(filepath.Dir(inv.Path), inv.Cluster+kubeconfigExtension)
}

// kubeconfigExtension ends the names of the kubeconfigs that kgpu makes.
const kubeconfigExtension = ".kubeconfig"

// Some kilobytes over a link that works.
var kubeconfigBounds = remote.Bounds{Bytes: kubeconfig.MaxFromHost, Time: 2 * time.Minute}

// Fetch brings the admin kubeconfig here when the local one is missing or another cluster's. Steps that changed something may have
// made it; otherwise facts tell whether there is one.
func (c *Cluster) Fetch(ctx context.Context, changed bool) error {
	if !changed && c.isFetched() {
		return nil
	}
	_, here, err := c.fetched(ctx)
	if errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		return nil // --only or --skip left kubeadm init out
	}
	if err != nil {
		return err
	}
	c.Tell(event.Event{Kind: event.StepDone, Step: "kubeconfig", Text: c.kubeconfig})
	if err := c.mergeAnew(here); err != nil { // the file is its owner's
		c.Warn("the cluster's context in your own kubeconfig is not up to date: %v; `kgpu kubeconfig --merge` brings it up to date", err)
	}
	return nil
}

// mergeAnew brings the user's own kubeconfig up to date where kgpu merged the cluster into it: certificates may have been renewed.
func (c *Cluster) mergeAnew(here *kubeconfig.Access) error {
	path, err := kubeconfig.DefaultPath()
	if err != nil {
		return nil // there is none
	}
	before, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	origin, wrong := filepath.Abs(c.Inventory.Path)
	if err := cmp.Or(err, wrong); err != nil {
		return err
	}
	without, err := kubeconfig.Forget(before, c.Inventory.Cluster, origin)
	if err != nil || bytes.Equal(before, without) {
		return nil // kgpu merged nothing into it
	}
	_, err = c.merge(here, false)
	return err
}

// isFetched reports whether the kubeconfig here is the cluster's, or there is none to be fetched.
func (c *Cluster) isFetched() bool {
	sum := sourceOf(c.kubeconfig)
	made := c.AnyPlane(func(f *facts.Host) bool { return f.ControlPlane != nil })
	return !made || !c.leadsElsewhere() && c.AnyPlane(func(f *facts.Host) bool { return f.ControlPlane != nil && f.ControlPlane.AdminConfSHA256 == sum })
}

// leadsElsewhere reports whether the kubeconfig here leads past the virtual address, which the cluster has got since.
func (c *Cluster) leadsElsewhere() bool {
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		return false
	}
	a, err := kubeconfig.Parse(text)
	at, virtual := besideVirtualIP(c.Inventory, c.AdminPlane())
	return err == nil && virtual && machine.OwnAPIName(a.Name()) && a.Server != serverAt(at)
}

// MayFetch finds before anything changes that the end of a story could not write the kubeconfig: one that changes something, and
// makes a cluster perhaps. It writes nothing.
func (c *Cluster) MayFetch(changes, makes bool) error {
	path := c.kubeconfig
	seen := c.Facts[c.AdminPlane().ID()].ControlPlane
	switch {
	case !changes && c.isFetched():
		return nil
	case seen == nil && !makes:
		return nil // --only or --skip left it out
	}
	same := func(a *kubeconfig.Access) bool {
		hash, err := facts.CAHash(a.CA)
		return err == nil && seen != nil && hash == seen.CAHash
	}
	if err := c.mayWriteKubeconfig(path, same); err != nil {
		return err
	}
	return FileError("writing "+path, atomicfile.Writable(path))
}

// writeKubeconfig writes a kubeconfig of the cluster where there is none, or one with nothing but this cluster in it.
func (c *Cluster) writeKubeconfig(path string, text []byte) error {
	same := func(a *kubeconfig.Access) bool {
		now, err := kubeconfig.Parse(text)
		return err == nil && bytes.Equal(a.CA, now.CA)
	}
	if err := c.mayWriteKubeconfig(path, same); err != nil {
		return err
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return FileError("writing "+path, err)
	}
	c.WarnOfGit(path)
	return nil
}

// mayWriteKubeconfig refuses to replace a file with something else in it than this cluster. same tells whether a way in is
// one into this cluster.
func (c *Cluster) mayWriteKubeconfig(path string, same func(*kubeconfig.Access) bool) error {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		before, err := os.ReadFile(path)
		if err != nil {
			return FileError("looking at "+path, err)
		}
		a, err := kubeconfig.Parse(before)
		ours := bytes.HasPrefix(before, []byte(sourceMark)) && kubeconfig.Alone(before)
		if !ours && (err != nil || a.Cluster != c.Inventory.Cluster) {
			return &reason.Error{
				ID: reason.KubeconfigConflict, Doing: "writing " + path, Detail: "it is there already, has something else in it, and stays as it is",
				Advice: "name another file; or let kgpu add the cluster to your kubeconfig: `kgpu kubeconfig --merge`",
			}
		}
		if c.isOfAnother(before) && (err != nil || !same(a)) {
			return &reason.Error{
				ID: reason.KubeconfigConflict, Doing: "writing " + path, Detail: "it is of the cluster whose control plane is " + hostOf(before) + ", and stays as it is",
				Advice: "give each inventory in a folder its own `cluster:`, or name another file",
			}
		}
	}
	return nil
}

// The first lines of a kubeconfig that kgpu wrote tell which admin.conf it was made of, and on which host of the inventory.
const (
	sourceMark = "# kgpu: made of admin.conf with sha256 "
	hostMark   = "# kgpu: of the control plane "
)

// hostOf is the address of the control plane that a kubeconfig was fetched from; empty: it does not say.
func hostOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if host, ok := bytes.CutPrefix(line, []byte(hostMark)); ok {
			return strings.TrimSpace(string(host))
		}
	}
	return ""
}

// isOfAnother reports whether a kubeconfig was fetched from another control plane than one of the inventory's: another inventory in
// the folder calls its cluster the same.
func (c *Cluster) isOfAnother(text []byte) bool {
	host := hostOf(text)
	return host != "" && !slices.ContainsFunc(c.Inventory.ControlPlanes(), func(h inventory.Host) bool { return h.Address == host })
}

func sourceOf(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	sum, ok := bytes.CutPrefix(line, []byte(sourceMark))
	if !ok {
		return ""
	}
	return string(sum)
}

// renamed is the way in with cluster, user and context named after the cluster, and the server where SSH reaches the host: that
// name is in the API server's certificate. It is the virtual address where there is one. kgpu's own name of the API server, which this machine does not resolve, is what that is
// known by. reached is the address that SSH reached; zero: unknown.
func renamed(inside *kubeconfig.Access, inv *inventory.Inventory, cp inventory.Host, reached netip.Addr) *kubeconfig.Access {
	a := *inside
	a.Cluster, a.User, a.Context = inv.Cluster, inv.Cluster+"-admin", inv.Cluster
	if machine.OwnAPIName(inside.Name()) {
		at, virtual := besideVirtualIP(inv, cp)
		if !virtual {
			at = addressOf(cp, reached)
		}
		if at.IsValid() {
			a.Server, a.TLSServerName = serverAt(at), inside.Name()
		}
		return &a
	}
	if at, err := netip.ParseAddr(cp.Address); err == nil && cp.SSH.Bastion == nil && cp.PrivateAddress.IsValid() {
		a.Server = serverAt(at)
	}
	return &a
}

// serverAt is the server of a kubeconfig that leads to an address.
func serverAt(at netip.Addr) string {
	return "https://" + netip.AddrPortFrom(at, catalog.APIPort).String()
}

// besideVirtualIP returns the virtual address, if there is one that is reached from here: where SSH reaches the address of a control
// plane's node, it reaches the virtual one beside it.
func besideVirtualIP(inv *inventory.Inventory, cp inventory.Host) (at netip.Addr, reached bool) {
	v := inv.Kubernetes.VirtualIP
	return v, v.IsValid() && (!cp.PrivateAddress.IsValid() || addressOf(cp, netip.Addr{}) == cp.PrivateAddress)
}

// addressOf is where a control plane may be reached from here; zero: nobody knows.
func addressOf(cp inventory.Host, reached netip.Addr) netip.Addr {
	at, err := netip.ParseAddr(cp.Address)
	switch {
	case err == nil && (cp.SSH.Bastion == nil || !cp.PrivateAddress.IsValid()):
		return at
	case cp.PrivateAddress.IsValid():
		return cp.PrivateAddress
	}
	return reached
}

// withSource is the file of a way in, which tells what admin.conf it was made of.
func withSource(a *kubeconfig.Access, conf []byte, cp inventory.Host) ([]byte, error) {
	text, err := a.Encode()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(conf)
	return append([]byte(sourceMark+hex.EncodeToString(sum[:])+"\n"+hostMark+cp.Address+"\n"), text...), nil
}

// Forget takes back what led from here to a cluster that is gone.
func (c *Cluster) Forget() error {
	path, err := kubeconfig.DefaultPath()
	if err == nil {
		err = c.forgetMerged(path)
	}
	if err != nil { // the file is its owner's, and the hosts are as they were
		c.Warn("what leads to the cluster is left in the kubeconfig: %v; `kubectl config delete-context %s` removes it", err, c.Inventory.Cluster)
	}
	return c.forgetKubeconfig()
}

// forgetMerged takes the cluster's context out of the user's own kubeconfig, where kgpu merged it.
func (c *Cluster) forgetMerged(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	origin, err := filepath.Abs(c.Inventory.Path)
	if err != nil {
		return err
	}
	return kubeconfig.Update(path, func(before []byte) ([]byte, error) { return kubeconfig.Forget(before, c.Inventory.Cluster, origin) })
}

// forgetKubeconfig removes the kubeconfig of a cluster that is gone, if kgpu wrote it.
func (c *Cluster) forgetKubeconfig() error {
	// One that is another cluster's, or has come to open others, too, stays.
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil || !bytes.HasPrefix(text, []byte(sourceMark)) || !kubeconfig.Alone(text) || c.isOfAnother(text) {
		return nil
	}
	if err := os.Remove(c.kubeconfig); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}

// gitTime bounds how long git may look at its own files, on a disk that may be a network's.
const gitTime = 5 * time.Second

// inGit reports whether git would take a file along: it is in a work tree, and nothing makes git ignore it. Without git, or
// where git has no answer, it is not. No program that the folder's own configuration names is run.
// Source: git-check-ignore(1), "EXIT STATUS".
func inGit(path string) bool {
	git, err := exec.LookPath("git")
	if err != nil {
		return false
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	const notIgnored = 1
	err = exec.CommandContext(ctx, git, "-c", "core.fsmonitor=false", "-C", filepath.Dir(path), "check-ignore", "--quiet", "--", path).Run()
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == notIgnored
}

// ignoreLine is the line of a .gitignore beside a kubeconfig that makes git ignore it.
func ignoreLine(path string) string {
	if filepath.Ext(path) == kubeconfigExtension {
		return "*" + kubeconfigExtension
	}
	return "/" + filepath.Base(path)
}

// WarnOfGit warns of a kubeconfig that git would take along, to all who have the repository.
func (c *Cluster) WarnOfGit(path string) {
	if inGit(path) {
		c.Warn("%s opens the cluster to whoever has it, and git would take it along: put the line `%s` into %s, and should it be committed already, `git rm --cached` it",
			path, ignoreLine(path), filepath.Join(filepath.Dir(path), ".gitignore"))
	}
}
