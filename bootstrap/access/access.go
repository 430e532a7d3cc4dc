// Package access is the ways into a cluster from this machine: its kubeconfig, kubectl and ssh, users, tunnels, and what a browser opens.
// What it changes are objects of the cluster, not hosts.
package access

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/session"
)

// ExitError ends kgpu with the exit status of a program that it ran for the user. The program has said why itself.
type ExitError struct{ Status int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// Cluster is the cluster of a session, as this machine gets into it.
type Cluster struct {
	*session.Session
	kubeconfig string // the administrator's: a path on this machine
}

// To is the cluster of a session. Its kubeconfig is at path; empty: beside the inventory.
func To(s *session.Session, path string) *Cluster {
	return &Cluster{s, cmp.Or(path, KubeconfigPath(s.Inventory))}
}

// enter connects to a control plane alone, and asks it nothing.
func enter(ctx context.Context, o session.Options) (*Cluster, error) {
	s := session.New(o)
	if err := s.ConnectPlane(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return To(s, ""), nil
}

// ways are the administrator's ways into the cluster: inside as the control plane has it, and here as it is used from here, with
// the text of its file.
func (c *Cluster) ways(ctx context.Context) (inside, here *kubeconfig.Access, text []byte, err error) {
	cp := c.AdminPlane()
	var conf []byte // for its sum only: what is used and written here is inside
	err = c.WithReconnect(ctx, cp.ID(), func(h *remote.Host) (err error) {
		conf, err = h.ReadFile(ctx, adminConf, kubeconfigBounds)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, &reason.Error{ID: reason.ClusterMissing, Host: cp.ID(), Detail: "there is no " + adminConf}
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: fetching the kubeconfig: %w", cp.ID(), err)
	}
	if inside, err = kubeconfig.FromHost(conf); err != nil {
		return nil, nil, nil, &reason.Error{ID: reason.KubeconfigUntrusted, Host: cp.ID(), Doing: "reading " + adminConf, Detail: err.Error()}
	}
	here = renamed(inside, c.Inventory, cp, c.Conn(cp.ID()).Addr())
	text, err = withSource(here, conf, cp)
	return inside, here, text, err
}

// Admin is the administrator's way in as it is used from here.
func (c *Cluster) Admin(ctx context.Context) (*kubeconfig.Access, error) {
	_, here, _, err := c.ways(ctx)
	return here, err
}

// clusterMissing is the error of a control plane that has none; nil: it has one, or cannot tell.
func (c *Cluster) clusterMissing(ctx context.Context) error {
	if _, err := c.Admin(ctx); errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		return err
	}
	return nil
}

// apiDial is how long the API server may take to show its certificate.
const apiDial = 5 * time.Second

type dialFunc func(ctx context.Context, address string) (net.Conn, error)

func directly(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// reachAPI reports whether the API server of a answers, and is the one of its certificate authority.
func reachAPI(ctx context.Context, a *kubeconfig.Access, dial dialFunc) error {
	address, err := a.Address()
	if err != nil {
		return err
	}
	config, err := a.TLS()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiDial)
	defer cancel()
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	return tls.Client(conn, config).HandshakeContext(ctx)
}

// isAnother reports whether what answered is another cluster's API server, or this one's after it was made anew.
func isAnother(err error) bool {
	_, wrong := errors.AsType[*tls.CertificateVerificationError](err)
	return wrong
}

// Warn tells the user something about the cluster.
func (c *Cluster) Warn(text string, args ...any) {
	c.Tell(event.Event{Host: c.AdminPlane().ID(), Kind: event.Warning, Text: fmt.Sprintf(text, args...)})
}

// FileError makes an error of a file here that holds a kubeconfig.
func FileError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if conflict, ok := errors.AsType[*kubeconfig.ConflictError](err); ok {
		return &reason.Error{ID: reason.KubeconfigConflict, Doing: doing, Detail: conflict.Error(), Err: err}
	}
	return &reason.Error{ID: reason.KubeconfigUnwritable, Doing: doing, Err: err}
}
