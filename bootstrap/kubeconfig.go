package bootstrap

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/plan"
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

// kubeconfig brings the admin kubeconfig here when the local one is missing or another cluster's. Steps that ran may have
// made it; otherwise facts tell whether there is one.
func (s *story) kubeconfig(ctx context.Context, changed bool) error {
	cp := s.AdminPlane()
	path := s.kubeconfigPath()
	if !changed {
		seen := s.Facts[cp.ID()].ControlPlane
		if seen == nil || sourceOf(path) == seen.AdminConfSHA256 {
			return nil
		}
	}
	conf, inside, err := s.admin(ctx)
	if errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		return nil // --only or --skip left kubeadm init out
	}
	if err != nil {
		return err
	}
	text, _, err := s.outside(conf, inside)
	if err != nil {
		return err
	}
	if err := s.writeKubeconfig(path, text); err != nil {
		return err
	}
	s.Tell(event.Event{Kind: event.StepDone, Step: "kubeconfig", Text: path})
	return nil
}

// checkKubeconfig finds before anything changes that the end of this plan could not write the kubeconfig. It writes nothing.
func (s *story) checkKubeconfig(graph *plan.Graph) error {
	path := s.kubeconfigPath()
	now, _ := graph.Split()
	seen := s.Facts[s.AdminPlane().ID()].ControlPlane
	switch {
	case now.Empty() && (seen == nil || sourceOf(path) == seen.AdminConfSHA256):
		return nil
	case seen == nil && !now.Has("cluster/init"):
		return nil // --only or --skip left it out
	}
	same := func(a *kubeconfig.Access) bool {
		hash, err := facts.CAHash(a.CA)
		return err == nil && seen != nil && hash == seen.CAHash
	}
	if err := s.mayWriteKubeconfig(path, same); err != nil {
		return err
	}
	return local("writing "+path, atomicfile.Writable(path))
}

// writeKubeconfig writes a kubeconfig of the cluster where there is none, or one with nothing but this cluster in it.
func (s *story) writeKubeconfig(path string, text []byte) error {
	same := func(a *kubeconfig.Access) bool {
		now, err := kubeconfig.Parse(text)
		return err == nil && bytes.Equal(a.CA, now.CA)
	}
	if err := s.mayWriteKubeconfig(path, same); err != nil {
		return err
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return local("writing "+path, err)
	}
	s.warnOfGit(path)
	return nil
}

// mayWriteKubeconfig refuses to replace a file with something else in it than this cluster. same tells whether a way in is
// one into this cluster.
func (s *story) mayWriteKubeconfig(path string, same func(*kubeconfig.Access) bool) error {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		before, err := os.ReadFile(path)
		if err != nil {
			return local("looking at "+path, err)
		}
		a, err := kubeconfig.Parse(before)
		ours := bytes.HasPrefix(before, []byte(sourceMark)) && kubeconfig.Alone(before)
		if !ours && (err != nil || a.Cluster != s.Inventory.Cluster) {
			return &reason.Error{
				ID: reason.KubeconfigConflict, Doing: "writing " + path, Detail: "it is there already, has something else in it, and stays as it is",
				Advice: "name another file; or let kgpu add the cluster to your kubeconfig: `kgpu kubeconfig --merge`",
			}
		}
		if s.isOfAnother(before) && (err != nil || !same(a)) {
			return &reason.Error{
				ID: reason.KubeconfigConflict, Doing: "writing " + path, Detail: "it is of the cluster whose control plane is " + hostOf(before) + ", and stays as it is",
				Advice: "give each inventory in a folder its own `cluster:`, or name another file",
			}
		}
	}
	return nil
}

// adminConf reads the administrator's kubeconfig of the control plane; errors.Is tells fs.ErrNotExist.
func (s *story) adminConf(ctx context.Context) ([]byte, error) {
	cp := s.AdminPlane().ID()
	var conf []byte
	err := s.Reconnecting(ctx, cp, func(h *remote.Host) (err error) {
		conf, err = h.ReadFile(ctx, adminConf, kubeconfigBounds)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: fetching the kubeconfig: %w", cp, err)
	}
	return conf, nil
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

// isOfAnother reports whether a kubeconfig was fetched from another control plane than the inventory's: another inventory in
// the folder calls its cluster the same.
func (s *story) isOfAnother(text []byte) bool {
	host := hostOf(text)
	return host != "" && host != s.AdminPlane().Address
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
// name is in the API server's certificate. kgpu's own name of the API server, which this machine does not resolve, is what that is
// known by. reached is the address that SSH reached; zero: unknown.
func renamed(inside *kubeconfig.Access, cluster string, cp inventory.Host, reached netip.Addr) *kubeconfig.Access {
	a := *inside
	a.Cluster, a.User, a.Context = cluster, cluster+"-admin", cluster
	if plan.OwnAPIName(inside.Name()) {
		if at := addressOf(cp, reached); at.IsValid() {
			a.Server, a.TLSServerName = "https://"+netip.AddrPortFrom(at, 6443).String(), inside.Name()
		}
		return &a
	}
	if at, err := netip.ParseAddr(cp.Address); err == nil && cp.SSH.Bastion == nil && cp.PrivateAddress.IsValid() {
		a.Server = "https://" + netip.AddrPortFrom(at, 6443).String()
	}
	return &a
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
