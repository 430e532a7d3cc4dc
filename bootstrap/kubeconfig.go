package bootstrap

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

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
	return filepath.Join(filepath.Dir(inv.Path), inv.Cluster+".kubeconfig")
}

// Some kilobytes over a link that works.
var kubeconfigBounds = remote.Bounds{Bytes: 1 << 20, Time: 2 * time.Minute}

// kubeconfig brings the admin kubeconfig here when the local one is missing or another cluster's. Steps that ran may have
// made it; otherwise facts tell whether there is one.
func (s *session) kubeconfig(ctx context.Context, changed bool) error {
	cp := s.controlPlane()
	path := s.kubeconfigPath()
	if !changed {
		seen := s.facts[cp.ID()].ControlPlane
		if seen == nil || sourceOf(path) == seen.AdminConfSHA256 {
			return nil
		}
	}
	conf, err := s.adminConf(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // --only or --skip left kubeadm init out
	}
	if err != nil {
		return err
	}
	text, err := rewriteKubeconfig(conf, s.Inventory.Cluster, cp)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", cp.ID(), adminConf, err)
	}
	if err := s.writeKubeconfig(path, text); err != nil {
		return err
	}
	s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Kind: event.StepDone, Step: "kubeconfig", Text: path})
	return nil
}

// checkKubeconfig finds before anything changes that the end of this plan could not write the kubeconfig. It writes nothing.
func (s *session) checkKubeconfig(graph *plan.Graph) error {
	path := s.kubeconfigPath()
	now, _ := graph.Split()
	seen := s.facts[s.controlPlane().ID()].ControlPlane
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
	return local("writing "+path, kubeconfig.Writable(path))
}

// writeKubeconfig writes a kubeconfig of the cluster where there is none, or one with nothing but this cluster in it.
func (s *session) writeKubeconfig(path string, text []byte) error {
	same := func(a *kubeconfig.Access) bool {
		now, err := kubeconfig.Parse(text)
		return err == nil && bytes.Equal(a.CA, now.CA)
	}
	if err := s.mayWriteKubeconfig(path, same); err != nil {
		return err
	}
	return local("writing "+path, kubeconfig.WriteFile(path, text))
}

// mayWriteKubeconfig refuses to replace a file with something else in it than this cluster. same tells whether a way in is
// one into this cluster.
func (s *session) mayWriteKubeconfig(path string, same func(*kubeconfig.Access) bool) error {
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
func (s *session) adminConf(ctx context.Context) ([]byte, error) {
	cp := s.controlPlane().ID()
	var conf []byte
	err := s.steadily(ctx, cp, func(h *remote.Host) (err error) {
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
func (s *session) isOfAnother(text []byte) bool {
	host := hostOf(text)
	return host != "" && host != s.controlPlane().Address
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

// rewriteKubeconfig names cluster, user and context after the cluster, and lets the server be reached the way SSH
// reaches the host: that name is in the API server's certificate.
func rewriteKubeconfig(conf []byte, cluster string, cp inventory.Host) ([]byte, error) {
	var k struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Clusters   []struct {
			Name    string         `yaml:"name"`
			Cluster map[string]any `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			Name string         `yaml:"name"`
			User map[string]any `yaml:"user"`
		} `yaml:"users"`
		Contexts       []any          `yaml:"contexts"`
		CurrentContext string         `yaml:"current-context"`
		Preferences    map[string]any `yaml:"preferences,omitempty"`
	}
	if err := yaml.Unmarshal(conf, &k); err != nil {
		return nil, errors.New("it is not the YAML of a kubeconfig") // the error may repeat a part of a key
	}
	if len(k.Clusters) != 1 || len(k.Users) != 1 {
		return nil, fmt.Errorf("%d clusters and %d users, one of each expected", len(k.Clusters), len(k.Users))
	}
	if k.Clusters[0].Cluster == nil || k.Users[0].User == nil {
		return nil, errors.New("a cluster or a user without anything in it")
	}
	user := cluster + "-admin"
	k.Clusters[0].Name, k.Users[0].Name, k.CurrentContext = cluster, user, cluster
	k.Contexts = []any{map[string]any{"name": cluster, "context": map[string]any{"cluster": cluster, "user": user}}}
	if a, err := netip.ParseAddr(cp.Address); err == nil && cp.SSH.Bastion == nil && cp.PrivateAddress.IsValid() {
		k.Clusters[0].Cluster["server"] = "https://" + netip.AddrPortFrom(a, 6443).String()
	}
	out, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(conf)
	return append([]byte(sourceMark+hex.EncodeToString(sum[:])+"\n"+hostMark+cp.Address+"\n"), out...), nil
}
