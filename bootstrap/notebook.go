package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/jupyter"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/smoke"
	"kgpu.dev/kgpu/inventory"
)

// Notebook is what a person needs who wants to work in it.
type Notebook struct {
	Devices *smoke.Devices
	URL     string // with the token: secret
	Tunnel  int    // the port of this machine that the URL has, which OpenNotebook leads from; zero: the URL needs no tunnel
}

// Time for what the notebook does. TensorFlow's first start reads gigabytes.
const (
	notebookAppears = 30 * time.Second // kube-proxy may be a little behind
	notebookDial    = 3 * time.Second
	notebookLists   = 5 * time.Minute
)

// notebookTunnel is the port that a tunnel to the notebook has on this machine: Jupyter's own.
const notebookTunnel = 8888

// openNotebook deploys the notebook and uses it as a person would: through its port, with its token, in a kernel of its
// own, which lists the devices. One that runs is replaced where that was planned only. It returns nil where no notebook is
// wanted.
func (s *session) openNotebook(ctx context.Context, planned bool) (*smoke.Devices, error) {
	if !plan.Selected(s.Only, s.Skip, plan.NotebookStep) {
		return nil, nil
	}
	graph, err := plan.Notebook(s.Inventory, s.facts, planned)
	if err != nil {
		return nil, err
	}
	if s.skips(graph); graph.Empty() {
		return nil, nil
	}
	done, err := s.engine().Execute(ctx, graph)
	if err != nil {
		return nil, err
	}
	said := done.Outputs[graph.Steps[0].Ref]
	token := strings.TrimSpace(string(said[plan.OutputNotebookToken]))
	port := s.Inventory.Notebook.NodePort
	if p, err := strconv.ParseUint(strings.TrimSpace(string(said[plan.OutputNotebookPort])), 10, 16); err == nil {
		port = int(p) // of one that stays as it is, which the inventory has another for by now
	}
	door, err := s.reachNotebook(ctx, s.hostOfNode(strings.TrimSpace(string(said[plan.OutputNotebookNode]))), token, port)
	if err != nil {
		return nil, err
	}
	devices, err := door.list(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := plan.ChooseNotebook(s.Inventory, s.facts)
	if err != nil {
		return nil, err
	}
	if s.Inventory.Notebook.Image == "" && !strings.EqualFold(devices.Source, string(chosen.Framework)) {
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Host: door.host, Kind: event.Warning, Text: "in the notebook: " + strings.Join(devices.Tried, "; ")})
	}
	s.Events.Emit(event.Event{
		Time: time.Now(), Run: s.Run, Host: door.host, Kind: event.Proof,
		Text: fmt.Sprintf("the notebook at %s lists %s (%s)", door.url(""), strings.Join(devices.Names, ", "), devices.Source),
	})
	if s.Opened != nil {
		s.Opened(Notebook{Devices: devices, URL: door.url(token), Tunnel: door.tunnel})
	}
	return devices, nil
}

// door is a way to the notebook.
type door struct {
	client *jupyter.Client
	host   string // of the inventory, on which the notebook runs
	at     string // host:port, as a browser here would write it
	tunnel int    // port of this machine in it; zero: it needs no tunnel
}

func (d *door) url(token string) string {
	u := url.URL{Scheme: "http", Host: d.at, Path: "/"}
	if token != "" {
		u.RawQuery = url.Values{"token": {token}}.Encode()
	}
	return u.String()
}

func (d *door) failure(id reason.ID, doing, detail string, err error) error {
	return &reason.Error{ID: id, Host: d.host, Doing: doing, Detail: detail, Err: err}
}

// list runs the code that lists the devices.
func (d *door) list(ctx context.Context) (*smoke.Devices, error) {
	const doing = "listing devices in the notebook"
	limited, cancel := context.WithTimeout(ctx, notebookLists)
	defer cancel()
	output, err := d.client.Run(limited, smoke.ListDevices)
	var hung *jupyter.HungError
	var raised *jupyter.ExecutionError
	switch {
	case ctx.Err() != nil:
		return nil, d.failure(reason.Cancelled, doing, "", context.Cause(ctx))
	case errors.As(err, &hung):
		return nil, d.failure(reason.NotebookFailed, doing,
			fmt.Sprintf("the kernel does not answer within %s while %s: a driver that hangs, or a slow disk; it printed %s", notebookLists, hung.Doing, smoke.LastWords(output)), err)
	case errors.As(err, &raised):
		return nil, d.failure(reason.NotebookNoGPU, doing, fmt.Sprintf("the code raised %s; it printed %s", raised, smoke.LastWords(output)), err)
	case err != nil:
		return nil, d.failure(reason.NotebookFailed, doing, "", err)
	}
	devices, err := smoke.JudgeNotebook(output)
	for _, e := range reason.All(err) {
		e.Host = d.host
	}
	return devices, err
}

// reachNotebook finds out how the notebook, which runs on the host id, can be reached from here: directly, or through SSH. Every
// node leads to it, and the one that is taken is the control plane, as by OpenNotebook: a person sees one address.
func (s *session) reachNotebook(ctx context.Context, id, token string, nodePort int) (*door, error) {
	cp := s.controlPlane().ID()
	host, port := s.hosts[cp], strconv.Itoa(nodePort)
	inside := net.JoinHostPort(s.nodeAddress(cp), port)
	through := func(ctx context.Context, _, _ string) (net.Conn, error) { return host.DialTCP(ctx, inside) }
	direct := func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{Timeout: notebookDial}).DialContext(ctx, network, address)
	}
	ways := []*door{{
		client: jupyter.New(inside, token, through), host: id, at: net.JoinHostPort("127.0.0.1", strconv.Itoa(notebookTunnel)), tunnel: notebookTunnel,
	}}
	if a := host.Addr(); a.IsValid() {
		at := net.JoinHostPort(a.String(), port)
		ways = append([]*door{{client: jupyter.New(at, token, direct), host: id, at: at}}, ways...)
	}
	limited, cancel := context.WithTimeout(ctx, notebookAppears)
	defer cancel()
	d, err := firstOpen(limited, ways)
	if err == nil {
		return d, nil
	}
	doing := "opening the notebook"
	if id != cp {
		doing += " on " + id + " through " + cp
	}
	if ctx.Err() != nil {
		return nil, ways[0].failure(reason.Cancelled, doing, "", context.Cause(ctx))
	}
	return nil, ways[0].failure(reason.NotebookUnreachable, doing, err.Error(), nil)
}

// firstOpen returns the first of the ways behind which a Jupyter server answers, however long that takes.
func firstOpen(ctx context.Context, ways []*door) (*door, error) {
	for {
		var errs []string
		for i, d := range ways {
			err := d.answers(ctx)
			switch {
			case err == nil && i > 0 && ways[0].answers(ctx) == nil:
				return ways[0], nil // it was only a little late
			case err == nil:
				return d, nil
			}
			way := "directly"
			if d.tunnel != 0 {
				way = "through SSH"
			}
			errs = append(errs, way+": "+err.Error())
		}
		select {
		case <-ctx.Done():
			return nil, errors.New(strings.Join(errs, "; "))
		case <-time.After(time.Second):
		}
	}
}

// answers asks without the token: what listens there may be something else.
func (d *door) answers(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 2*notebookDial)
	defer cancel()
	_, err := d.client.Version(limited)
	return err
}

// hostOfNode is the host whose node this is, or the control plane's where kgpu has no connection to it.
func (s *session) hostOfNode(node string) string {
	for _, h := range s.Inventory.Hosts {
		if f := s.facts[h.ID()]; f != nil && s.hosts[h.ID()] != nil && plan.NodeName(h, f) == node {
			return h.ID()
		}
	}
	return s.controlPlane().ID()
}

func (s *session) nodeAddress(id string) string {
	return plan.NodeAddress(s.host(id), s.facts[id]).String()
}

func (s *session) host(id string) inventory.Host {
	i := slices.IndexFunc(s.Inventory.Hosts, func(h inventory.Host) bool { return h.ID() == id })
	return s.Inventory.Hosts[i]
}
