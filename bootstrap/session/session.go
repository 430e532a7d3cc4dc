// Package session is the connections to the hosts of a cluster and what is known of them: their facts, which are gathered again as
// often as a story needs, who holds the cluster's lock, and the hosts that the story goes on without.
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

// NewRunID names a run: the time, for people, and random digits, so that two runs never share a name.
func NewRunID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// Options are what every story that connects to hosts needs.
type Options struct {
	Inventory *inventory.Inventory
	Run       string // ID of this run, from NewRunID
	Events    event.Sink
	SSHConfig string   // path of an ssh_config to honour; empty: none
	Limit     []string // host IDs, beside the control planes; empty: all
	Command   string   // what others are told this run does: "up inventory.yaml"; no secret

	// Without is the command that does the same for these hosts only; without any, HOST… stands for them. nil: no command is told.
	Without func(hosts []string) string

	// Trust says whether a host's key that nobody here knows is the right one; nil: nobody can be asked.
	Trust func(*remote.UnknownKeyError) bool
}

// Tell emits an event of this run, now.
func (o Options) Tell(e event.Event) {
	e.Time, e.Run = time.Now(), o.Run
	o.Events.Emit(e)
}

// Session is the connections to a set of hosts and what was seen there.
type Session struct {
	Options
	Facts map[string]*facts.Host // by host ID, of those that the story goes on with

	TolerateWorkers bool  // workers that are lost after the start are excluded
	Excluded        error // what those failed with that were

	dialer   *remote.Dialer
	budget   event.Budget // of what the hosts may tell
	warnings run.Warnings // of the steps
	forgets  bool         // the hosts forget everything of kgpu

	mu    sync.Mutex // of Facts too, while several hosts are looked at
	hosts map[string]*remote.Host
	skew  map[string]time.Duration
}

// New has no connections yet.
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

// Open connects to the hosts and gathers their facts, all at the same time. Every host that fails is in the error.
func Open(ctx context.Context, o Options, hosts []inventory.Host) (*Session, error) {
	s := New(o)
	if err := Each(hosts, func(h inventory.Host) error { return s.Meet(ctx, h) }); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Meet connects to a host and gathers its facts.
func (s *Session) Meet(ctx context.Context, h inventory.Host) error {
	if _, err := s.Connect(ctx, h); err != nil {
		return err
	}
	return s.Look(ctx, h.ID())
}

// Connect returns the connection to a host. Where there is none yet, it makes one, which has its own bounds, and may ask somebody
// about the host's key.
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

// Conn is the connection to a host; nil: there is none.
func (s *Session) Conn(id string) *remote.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[id]
}

// Route is the way to a host: the hops, of which it is the last.
func (s *Session) Route(h inventory.Host) ([]remote.Hop, error) { return s.dialer.Route(h) }

// Drop ends the connection to a host.
func (s *Session) Drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn := s.hosts[id]; conn != nil {
		conn.Close()
		delete(s.hosts, id)
	}
}

// Close ends all connections.
func (s *Session) Close() {
	s.tellWarnings()
	for _, h := range s.hosts {
		h.Close()
	}
	s.dialer.Close()
}

// tellWarnings tells what the steps warned of, the same of several hosts once: when all of them have, at the end of the story.
func (s *Session) tellWarnings() {
	order := func(id string) int {
		return slices.IndexFunc(s.Inventory.Hosts, func(h inventory.Host) bool { return h.ID() == id })
	}
	for _, w := range s.warnings.Take() {
		slices.SortFunc(w.Hosts, func(a, b string) int { return order(a) - order(b) })
		s.Tell(event.Event{Kind: event.Warning, Text: strings.Join(w.Hosts, ", ") + ": " + w.Text})
	}
}

// Execute runs a graph of steps on the hosts.
func (s *Session) Execute(ctx context.Context, g *graph.Graph) (*run.Result, error) {
	return s.engine().Execute(ctx, g)
}

func (s *Session) engine() *run.Engine {
	hosts := make(map[string]run.Host, len(s.hosts))
	for id, h := range s.hosts {
		hosts[id] = h
	}
	return &run.Engine{
		Run: s.Run, By: operator(), Fence: s.fence(), Hosts: hosts, Events: s.Events, Budget: &s.budget, Warnings: &s.warnings, Script: scripts.Step, Lib: scripts.Lib(),
		Timeouts: s.Inventory.Timeouts, Forgets: s.forgets,
		Heard: func(host, name string, value []byte) {
			if name == plan.OutputLeft {
				s.tellUnreverted(host, value)
			}
		},
	}
}

// mostFence is what is believed of a host's number of a lock, so that one that lies cannot use all numbers up: they grow by one.
const mostFence = 1 << 62

// fence is the highest number of a lock that the hosts have told of.
func (s *Session) fence() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := int64(0)
	for _, f := range s.Facts {
		if f.Fence <= mostFence {
			most = max(most, f.Fence)
		}
	}
	return most
}

// operator is who runs kgpu, for others who find the host busy.
func operator() string {
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
