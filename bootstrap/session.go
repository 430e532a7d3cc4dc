// Package bootstrap tells the stories of kgpu's commands, one file each, over the same five words: the inventory
// (desired), facts (observed), a plan (pure), a run (a graph of steps on hosts) and a proof.
package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
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
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// Options are what every story that touches hosts needs.
type Options struct {
	Inventory  *inventory.Inventory
	Run        string // ID of this run, from NewRunID
	Events     event.Sink
	SSHConfig  string   // path of an ssh_config to honour; empty: none
	Ignore     []string // reason IDs that preflight does not stop at
	Only, Skip []string // step IDs
	Limit      []string // host IDs
	Kubeconfig string   // where the admin kubeconfig goes; empty: beside the inventory
	Command    string   // what others are told this run does: "up inventory.yaml"; no secret
	Adopt      bool     // take over what was made by hand, where that is safe

	// Trust says whether a host's key that nobody here knows is the right one; nil: nobody can be asked.
	Trust func(*remote.UnknownKeyError) bool
	// Agree is asked before nodes are drained: an error ends the story, nothing is changed. It need not bother anybody where no
	// node has pods: agreed is false then, and pods with cards that come to a node before its turn keep it from being drained.
	Agree          func([]Disturbance) (agreed bool, err error)
	Without        func(hosts []string) string // the command for these hosts only; without any, HOST… stands for them; nil: no command is told
	Opened         func(Notebook)              // hears how the notebook is opened, with its token: not for logs; nil: nobody wants to know
	MaxUnavailable int                         // nodes that may be drained at the same time; zero: one
	Now            func() time.Time            // the clock; nil: this machine's
}

// NewRunID names a run: the time, for people, and random digits, so that two runs never share a name.
func NewRunID(now time.Time) string {
	var b [3]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand never fails on supported systems
	}
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// session is the connections to a set of hosts and what was seen there.
type session struct {
	Options
	dialer   *remote.Dialer
	budget   event.Budget // of what the hosts may tell
	warnings run.Warnings // of the steps
	drains   []string     // nodes that the operator agreed to have drained

	goesOn bool  // without workers that are lost after the start
	left   error // what those failed with that it went on without

	mu    sync.Mutex
	hosts map[string]*remote.Host
	facts map[string]*facts.Host
	skew  map[string]time.Duration

	kubernetes string // which version a new cluster gets, and why; empty: it is fixed

	forgets bool // the story makes hosts forget everything of kgpu
}

// newSession has no connections yet.
func newSession(o Options) *session {
	return &session{
		Options: o,
		dialer: remote.NewDialer(remote.Options{
			Run: o.Run, Events: o.Events, SSHConfig: o.SSHConfig, Trust: o.Trust,
			LinkTimeout: o.Inventory.Timeouts.Link, RebootTimeout: o.Inventory.Timeouts.Reboot,
			Secret: func(ref inventory.Secret) (string, error) { return ref.Resolve(os.LookupEnv, inventory.ReadSecret) },
		}),
		hosts: map[string]*remote.Host{}, facts: map[string]*facts.Host{}, skew: map[string]time.Duration{},
	}
}

// open connects to the hosts and gathers their facts, all at the same time. Every host that fails is in the error.
func open(ctx context.Context, o Options, hosts []inventory.Host) (*session, error) {
	s := newSession(o)
	if err := each(hosts, func(h inventory.Host) error { return s.meet(ctx, h) }); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// meet connects to a host and gathers its facts.
func (s *session) meet(ctx context.Context, h inventory.Host) error {
	conn, err := s.dialer.Dial(ctx, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.hosts[h.ID()] = conn
	s.mu.Unlock()
	return s.look(ctx, h.ID())
}

// drop ends the connection to a host that the story goes on without.
func (s *session) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn := s.hosts[id]; conn != nil {
		conn.Close()
		delete(s.hosts, id)
	}
}

func (s *session) close() {
	s.tellWarnings()
	for _, h := range s.hosts {
		h.Close()
	}
	s.dialer.Close()
}

// tellWarnings tells what the steps warned of, the same of several hosts once: when all of them have, at the end of the story.
func (s *session) tellWarnings() {
	order := func(id string) int {
		return slices.IndexFunc(s.Inventory.Hosts, func(h inventory.Host) bool { return h.ID() == id })
	}
	for _, w := range s.warnings.Take() {
		slices.SortFunc(w.Hosts, func(a, b string) int { return order(a) - order(b) })
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Kind: event.Warning, Text: strings.Join(w.Hosts, ", ") + ": " + w.Text})
	}
}

// What a host may take to tell what it is. What the facts can do without may take three minutes in all where everything hangs:
// the driver, docker, etcd's directory and the API server. For the rest they wait half a minute at a program that hangs, and
// end; one after the other may be slow. Thousands of nodes, packages and addresses are a few megabytes.
var factsBounds = remote.Bounds{Bytes: 8 << 20, Time: 5 * time.Minute}

// attach follows the runs that a former kgpu left on the hosts to their ends, and looks at those hosts and the cluster again.
func (s *session) attach(ctx context.Context) error {
	return s.former(ctx, (*run.Engine).Attach)
}

// stop does so after it asked them to come to an end.
func (s *session) stop(ctx context.Context) error {
	return s.former(ctx, (*run.Engine).Stop)
}

// awaiting is attach or stop before there is a plan: who comes while it waits is told at once, as during any work.
func (s *session) awaiting(ctx context.Context, end func(context.Context) error) error {
	if len(s.stillAtWork()) == 0 {
		return nil
	}
	return s.holding(ctx, end)
}

// stillAtWork are the hosts on which a run of a former kgpu goes on.
func (s *session) stillAtWork() []inventory.Host {
	var busy []inventory.Host
	for _, h := range s.Inventory.Hosts {
		if f := s.facts[h.ID()]; f != nil && f.Run != nil {
			busy = append(busy, h)
		}
	}
	return busy
}

func (s *session) former(ctx context.Context, follow func(*run.Engine, context.Context, string, string) error) error {
	busy := s.stillAtWork()
	err := s.visit(ctx, busy, func(h inventory.Host) error {
		s.mu.Lock()
		former := s.facts[h.ID()].Run
		s.mu.Unlock()
		s.Events.Emit(event.Event{
			Time: time.Now(), Run: s.Run, Host: h.ID(), Step: former.Step, Kind: event.Wait,
			Text: fmt.Sprintf("a former run (%s, by %s) is still at work here", former.ID, former.By),
		})
		// Its failure is not this run's: the host is looked at again, and what is missing is planned again.
		err := follow(s.engine(), ctx, h.ID(), former.ID)
		if err != nil && ctx.Err() != nil {
			return err
		}
		return s.look(ctx, h.ID())
	})
	if err != nil || len(busy) == 0 {
		return err
	}
	// What those runs did to the cluster, its control plane knows.
	return s.look(ctx, s.adminPlane().ID())
}

// preflight judges the hosts before anything on them is touched. What they tell of their repositories decides the version of a new
// cluster: once, for the whole session.
func (s *session) preflight(ctx context.Context) error {
	network, err := s.reach(ctx)
	if err != nil {
		return err
	}
	s.Inventory, s.kubernetes = plan.ChooseVersion(s.Inventory, s.facts, network.offers)
	var machines []preflight.Machine
	for _, h := range s.Inventory.Hosts {
		if f := s.facts[h.ID()]; f != nil {
			machines = append(machines, preflight.Machine{
				Host: h, Facts: f, Skew: s.skew[h.ID()], Needs: network.needs[h.ID()], Reach: network.found[h.ID()], Offer: network.offers[h.ID()],
				Adopt: s.Adopt,
			})
		}
	}
	var errs []error
	for _, p := range preflight.Check(s.settled(), machines, append(s.Inventory.Ignore, s.Ignore...)) {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// settled is the inventory with the version of Kubernetes that the cluster runs, as far as it was looked at.
func (s *session) settled() *inventory.Inventory { return plan.Settled(s.Inventory, s.facts) }

func (s *session) engine() *run.Engine {
	hosts := make(map[string]run.Host, len(s.hosts))
	for id, h := range s.hosts {
		hosts[id] = h
	}
	return &run.Engine{
		Run: s.Run, By: operator(), Fence: s.fence(), Hosts: hosts, Events: s.Events, Budget: &s.budget, Warnings: &s.warnings, Script: scripts.Step, Lib: scripts.Lib(),
		Timeouts: s.Inventory.Timeouts, Forgets: s.forgets,
		Heard: func(host, name string, value []byte) {
			if name == plan.OutputLeft {
				s.tellLeft(host, value)
			}
		},
	}
}

// mostFence is what is believed of a host's number of a hold, so that one that lies cannot use all numbers up: they grow by one.
const mostFence = 1 << 62

// fence is the highest number of a hold that the hosts have told of.
func (s *session) fence() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := int64(0)
	for _, f := range s.facts {
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

// skips tells about the steps that have nothing to do.
func (s *session) skips(g *graph.Graph) {
	for _, skipped := range g.Skipped {
		why := event.Satisfied
		if skipped.Unwanted {
			why = event.Unselected
		}
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Host: skipped.Host, Step: skipped.ID, Kind: event.StepSkip, Reason: why, Text: skipped.Reason})
	}
	for _, w := range g.Told() {
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Kind: event.Warning, Text: w})
	}
}

// each calls f for every host at the same time and joins the errors in host order.
func each(hosts []inventory.Host, f func(inventory.Host) error) error {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { errs[i] = f(h) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
