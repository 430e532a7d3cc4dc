// Package session connects to the hosts of a cluster and keeps what is known of them: their facts, the holder of the
// cluster's lock, and the hosts that were excluded.
package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// NewRunID returns a unique ID for a run: the time and random digits.
func NewRunID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// Options are for all stories that connect to hosts.
type Options struct {
	Inventory *inventory.Inventory
	Run       string // ID of this run, from NewRunID
	Events    event.Sink
	SSHConfig string   // path of an ssh_config; empty if none
	Limit     []string // host IDs to which the story is limited, beside the control planes; empty for all
	Command   string   // what others are told about this run, without secrets: "up inventory.yaml"

	// Without returns the command that does the same for these hosts only, or for HOST… if there are none. It is nil if
	// there is no such command.
	Without func(hosts []string) string

	// Trust decides whether an unknown host key is accepted. It is nil if nobody can be asked.
	Trust func(*remote.UnknownKeyError) bool
}

// Tell emits an event of this run with the current time.
func (o Options) Tell(e event.Event) {
	e.Time, e.Run = time.Now(), o.Run
	o.Events.Emit(e)
}

// Session is the connections to a set of hosts and their facts.
type Session struct {
	Options
	Facts map[string]*facts.Host // by host ID, without excluded hosts

	TolerateWorkers bool  // workers that are lost after the start are excluded
	Excluded        error // the errors of the excluded workers

	dialer   *remote.Dialer
	budget   event.Budget // bytes that hosts may send
	warnings run.Warnings // of steps, told by Close
	forgets  bool         // kgpu's files are removed from the hosts

	mu    sync.Mutex // guards the fields below, and Facts while facts are gathered
	hosts map[string]*remote.Host
	skew  map[string]time.Duration
}

// New returns a session without connections.
func New(o Options) *Session {
	return &Session{
		Options: o,
		dialer: remote.NewDialer(remote.Options{
			Run: o.Run, Events: o.Events, SSHConfig: o.SSHConfig, Trust: o.Trust,
			LinkTimeout: o.Inventory.Timeouts.Link, RebootTimeout: o.Inventory.Timeouts.Reboot,
			Secret: func(ref inventory.Secret) (string, error) { return ref.Resolve(os.LookupEnv, inventory.ReadSecret) },
		}),
		hosts: map[string]*remote.Host{}, Facts: map[string]*facts.Host{}, skew: map[string]time.Duration{},
	}
}

// Open connects to the hosts and gathers their facts, all at the same time. The error has those of all hosts that
// failed, but for control planes that the cluster does without.
func Open(ctx context.Context, o Options, hosts []inventory.Host) (*Session, error) {
	s := New(o)
	if err := s.Meet(hosts, func(h inventory.Host) error { return s.ConnectAndGather(ctx, h) }); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ConnectAndGather connects to a host and gathers its facts.
func (s *Session) ConnectAndGather(ctx context.Context, h inventory.Host) error {
	if _, err := s.Connect(ctx, h); err != nil {
		return err
	}
	return s.GatherFacts(ctx, h.ID())
}

// Connect returns the connection to a host, and makes it if there is none. It may ask Trust about the host's key.
func (s *Session) Connect(ctx context.Context, h inventory.Host) (*remote.Host, error) {
	if conn := s.Conn(h.ID()); conn != nil {
		return conn, nil
	}
	conn, err := s.dialer.Dial(ctx, h)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts[h.ID()] = conn
	return conn, nil
}

// Conn is the connection to a host; nil if there is none.
func (s *Session) Conn(id string) *remote.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[id]
}

// Route returns the hops to a host, of which the host is the last.
func (s *Session) Route(h inventory.Host) ([]remote.Hop, error) { return s.dialer.Route(h) }

// Disconnect closes the connection to a host.
func (s *Session) Disconnect(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn := s.hosts[id]; conn != nil {
		conn.Close()
		delete(s.hosts, id)
	}
}

// Close reports the warnings of the steps and closes all connections.
func (s *Session) Close() {
	s.tellWarnings()
	for _, h := range s.hosts {
		h.Close()
	}
	s.dialer.Close()
}

// tellWarnings emits the warnings of the steps, at the end of the story, so that one of several hosts is told once.
func (s *Session) tellWarnings() {
	order := func(id string) int {
		return slices.IndexFunc(s.Inventory.Hosts, func(h inventory.Host) bool { return h.ID() == id })
	}
	for _, w := range s.warnings.Take() {
		slices.SortFunc(w.Hosts, func(a, b string) int { return order(a) - order(b) })
		s.Tell(event.Event{Kind: event.Warning, Text: strings.Join(w.Hosts, ", ") + ": " + w.Text})
	}
}

// Execute runs the steps of a graph on the hosts.
func (s *Session) Execute(ctx context.Context, g *graph.Graph) (*run.Result, error) {
	return s.engine().Execute(ctx, g)
}

func (s *Session) engine() *run.Engine {
	hosts := make(map[string]run.Host, len(s.hosts))
	for id, h := range s.hosts {
		hosts[id] = h
	}
	return &run.Engine{
		Run: s.Run, By: userAtHost(), Fence: s.fence(), Hosts: hosts, Events: s.Events, Budget: &s.budget, Warnings: &s.warnings, Script: scripts.Step, Lib: scripts.Lib(),
		Timeouts: s.Inventory.Timeouts, Forgets: s.forgets,
		Heard: func(host, name string, value []byte) {
			if name == plan.OutputLeft {
				s.tellUnreverted(host, value)
			}
		},
	}
}

// maxFence limits the fencing numbers accepted from hosts, so that a lying host cannot exhaust them: kgpu's grow by
// one.
const maxFence = 1 << 62

// fence is the highest fencing number in the facts.
func (s *Session) fence() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := int64(0)
	for _, f := range s.Facts {
		if f.Fence <= maxFence {
			most = max(most, f.Fence)
		}
	}
	return most
}

// userAtHost is user@machine, for others who find a host busy.
func userAtHost() string {
	name, machine := "somebody", "somewhere"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		machine = h
	}
	return name + "@" + machine
}

// Each calls f for every host at the same time and joins the errors in host order.
func Each(hosts []inventory.Host, f func(inventory.Host) error) error {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { errs[i] = f(h) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
