package access

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// KubeconfigOptions are what Kubeconfig needs beyond what all stories need.
type KubeconfigOptions struct {
	File   string    // where it goes; empty: as after up; "-": Out
	Merge  bool      // into the user's own, instead of a file
	Use    bool      // and make its context the current one
	Tunnel bool      // the server is a port of this machine, which leads there until ctx ends
	Port   int       // of this machine; 0: a free one
	Out    io.Writer // hears what was done, for people
}

// Kubeconfig fetches the administrator's kubeconfig of the cluster.
func Kubeconfig(ctx context.Context, o session.Options, k KubeconfigOptions) error {
	c, err := enter(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	inside, a, text, err := c.ways(ctx)
	if err != nil {
		return err
	}
	if k.Tunnel {
		return c.tunnelled(ctx, k, inside, a)
	}
	switch {
	case k.Merge:
		if k.File, err = c.merge(a, k.Use); err == nil {
			err = report.PrintMerged(k.Out, k.File, a.Context)
		}
	case k.File == "-":
		_, err = io.Copy(k.Out, bytes.NewReader(text))
	default:
		k.File = cmp.Or(k.File, c.kubeconfig)
		if err = c.writeKubeconfig(k.File, text); err == nil {
			err = report.PrintKubeconfig(k.Out, k.File)
		}
	}
	if err != nil {
		return err
	}
	if err := reachAPI(ctx, a, directly); err != nil && ctx.Err() == nil {
		c.Warn("the API server cannot be reached from here at %s: %v. Through SSH it can: `kgpu kubectl -- get nodes`, or `kgpu kubeconfig --tunnel`", a.Server, err)
	}
	return nil
}

// merge puts the way in into the user's own kubeconfig, and returns where that is.
func (c *Cluster) merge(a *kubeconfig.Access, use bool) (string, error) {
	path, err := kubeconfig.DefaultPath()
	if err != nil {
		return "", FileError("finding the kubeconfig", err)
	}
	origin, err := filepath.Abs(c.Inventory.Path)
	if err != nil {
		return "", FileError("finding the inventory", err)
	}
	return path, FileError("merging into "+path, kubeconfig.Update(path, func(before []byte) ([]byte, error) {
		return kubeconfig.Merge(before, a, origin, filepath.Dir(path), use || !kubeconfig.HasCurrent())
	}))
}

// tunnelled is the way in through a port of this machine: the server is known by a name in its certificate.
func tunnelled(l net.Listener, inside, named *kubeconfig.Access) *kubeconfig.Access {
	a := *named
	a.Server, a.TLSServerName = "https://"+l.Addr().String(), inside.Name()
	return &a
}

// tunnelled writes a kubeconfig for a port of this machine, and passes on what comes there until ctx ends. The file goes with
// the tunnel.
func (c *Cluster) tunnelled(ctx context.Context, k KubeconfigOptions, inside, named *kubeconfig.Access) error {
	cp := c.AdminPlane().ID()
	address, err := inside.Address()
	if err != nil {
		return err
	}
	if err := reachAPI(ctx, inside, c.through(cp)); err != nil {
		return &reason.Error{ID: reason.APIUnreachable, Host: cp, Doing: "reaching " + inside.Server + " through SSH", Err: err}
	}
	l, err := listen(k.Port)
	if err != nil {
		return err
	}
	defer l.Close()
	k.File = cmp.Or(k.File, filepath.Join(filepath.Dir(c.kubeconfig), c.Inventory.Cluster+"-tunnel.kubeconfig"))
	text, err := tunnelled(l, inside, named).Encode()
	if err != nil {
		return err
	}
	if k.File == "-" {
		_, err = k.Out.Write(text)
	} else if err = c.writeKubeconfig(k.File, text); err == nil {
		defer os.Remove(k.File)
		err = report.PrintTunnel(k.Out, k.File, l.Addr().String())
	}
	if err != nil {
		return err
	}
	return c.forward(ctx, l, cp, address)
}

// fetched brings the kubeconfig beside the inventory.
func (c *Cluster) fetched(ctx context.Context) (inside, here *kubeconfig.Access, err error) {
	inside, here, text, err := c.ways(ctx)
	if err == nil {
		err = c.writeKubeconfig(c.kubeconfig, text)
	}
	return inside, here, err
}
