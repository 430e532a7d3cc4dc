package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/jupyter"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/smoke"
)

// Notebook is what a person needs who wants to work in it.
type Notebook struct {
	Devices *smoke.Devices // that it computed on
	URL     string         // with the token: secret
	Tunnel  int            // the port of this machine that the URL has, which OpenNotebook leads from
	Port    uint16         // of every node, that leads there, too, without encryption; zero: none does
}

// Time for what the notebook does. TensorFlow's first start reads gigabytes.
const (
	notebookAppears  = 30 * time.Second // kube-proxy may be a little behind
	notebookAnswers  = 6 * time.Second
	notebookComputes = 5 * time.Minute
)

// notebookTunnel is the port that a tunnel to the notebook has on this machine: Jupyter's own.
const notebookTunnel = 8888

// UseNotebook uses the notebook that runs on a host as a person would: through its port, with its token, in a kernel of its own,
// which computes on its card. service, token and port are what a host tells of it.
func (c *Cluster) UseNotebook(ctx context.Context, host, service, token, port string) (*Notebook, error) {
	open, err := nodePort(port)
	if err != nil || !isToken(token) {
		return nil, c.misunderstood("notebook")
	}
	server, err := c.reachNotebook(ctx, host, token, service)
	if err != nil {
		return nil, err
	}
	devices, err := server.compute(ctx)
	if err != nil {
		return nil, err
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(notebookTunnel))
	return &Notebook{Devices: devices, URL: notebookURL(at, token), Tunnel: notebookTunnel, Port: open}, nil
}

// notebookServer is the way to the notebook: through SSH. Nothing else on the way could answer in its place, or hear the token.
type notebookServer struct {
	client *jupyter.Client
	host   string // of the inventory, on which the notebook runs
}

// notebookURL is what opens the notebook behind at, host:port as a browser here would write it.
func notebookURL(at, token string) string {
	return (&url.URL{Scheme: "http", Host: at, Path: "/", RawQuery: url.Values{"token": {token}}.Encode()}).String()
}

func (n *notebookServer) failure(id reason.ID, doing, detail string, err error) error {
	return &reason.Error{ID: id, Host: n.host, Doing: doing, Detail: detail, Err: err}
}

// compute runs the code that computes on the devices.
func (n *notebookServer) compute(ctx context.Context) (*smoke.Devices, error) {
	const doing = "computing in the notebook"
	limited, cancel := context.WithTimeout(ctx, notebookComputes)
	defer cancel()
	output, err := n.client.Run(limited, smoke.ComputeOnDevices)
	var hung *jupyter.HungError
	var raised *jupyter.ExecutionError
	switch {
	case ctx.Err() != nil:
		return nil, n.failure(reason.Cancelled, doing, "", context.Cause(ctx))
	case errors.As(err, &hung):
		return nil, n.failure(reason.NotebookFailed, doing,
			fmt.Sprintf("the kernel does not answer within %s while %s: a driver that hangs, or a slow disk; it printed %s", notebookComputes, hung.Doing, smoke.QuotedLastLine(output)), err)
	case errors.As(err, &raised):
		return nil, n.failure(reason.NotebookNoGPU, doing, fmt.Sprintf("the code raised %s; it printed %s", raised, smoke.QuotedLastLine(output)), err)
	case err != nil:
		return nil, n.failure(reason.NotebookFailed, doing, "", err)
	}
	devices, err := smoke.CheckNotebook(output)
	for _, e := range reason.All(err) {
		e.Host = n.host
	}
	return devices, err
}

// reachNotebook waits until the notebook, which runs on the host id, answers at its service's address, HOST:PORT as the control
// plane sees it: by the way that OpenNotebook leads, too.
func (c *Cluster) reachNotebook(ctx context.Context, id, token, service string) (*notebookServer, error) {
	at, err := serviceAddress(service)
	if err != nil {
		return nil, c.misunderstood("notebook")
	}
	cp := c.AdminPlane().ID()
	dial := c.through(cp)
	n := &notebookServer{host: id, client: jupyter.New(at, token, func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, at) })}
	limited, cancel := context.WithTimeout(ctx, notebookAppears)
	defer cancel()
	if err = n.opens(limited); err == nil {
		return n, nil
	}
	doing := "opening the notebook"
	if id != cp {
		doing += " on " + id + " through " + cp
	}
	if ctx.Err() != nil {
		return nil, n.failure(reason.Cancelled, doing, "", context.Cause(ctx))
	}
	return nil, n.failure(reason.NotebookUnreachable, doing, err.Error(), nil)
}

// serviceAddress reads the address of a service in the cluster, ADDRESS:PORT as kubectl prints them, which a host tells. It is an
// address, and no name; one of IPv6 has no brackets there.
func serviceAddress(text string) (string, error) {
	wrong := fmt.Errorf("%q is not the address of a service", text)
	colon := max(strings.LastIndexByte(text, ':'), 0)
	host, err := netip.ParseAddr(text[:colon])
	if err != nil || host.IsUnspecified() || host.Zone() != "" {
		return "", wrong
	}
	port, err := strconv.ParseUint(text[min(colon+1, len(text)):], 10, 16)
	if err != nil || port == 0 {
		return "", wrong
	}
	return netip.AddrPortFrom(host, uint16(port)).String(), nil
}

// nodePort reads a port of every node, which a host tells; empty: none.
func nodePort(text string) (uint16, error) {
	if text == "" {
		return 0, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err == nil && port == 0 {
		err = errors.New("no port is 0")
	}
	return uint16(port), err
}

// maxToken is how many bytes a token may have that a host tells: one of a ServiceAccount has a thousand.
const maxToken = 8 << 10

// isToken reports whether a text that a host tells may be a token: printable ASCII.
func isToken(text string) bool {
	return text != "" && len(text) <= maxToken && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// opens waits until a Jupyter server answers.
func (n *notebookServer) opens(ctx context.Context) error {
	for {
		err := n.answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// answers asks without the token: what listens there may be something else.
func (n *notebookServer) answers(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, notebookAnswers)
	defer cancel()
	_, err := n.client.Version(limited)
	return err
}
