package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// virtualIPBounds are for a look of some seconds.
var virtualIPBounds = Bounds{Bytes: 64 << 10, Time: time.Minute}

// ListenForVirtualIP lets a control plane find out whether somebody has the virtual address already, before one of them has it by kgpu's doing.
// It returns the ID of that host; empty: none was asked.
func (s *Session) ListenForVirtualIP(ctx context.Context) (id string, told *facts.VirtualIP, err error) {
	set := machine.SetOf(s.Inventory, s.Facts)
	v := s.Inventory.Kubernetes.VirtualIP
	if !v.IsValid() || set.First == nil || set.ServesVirtualIP() {
		return "", nil, nil
	}
	at, ok := set.First.Beside(v)
	if !ok {
		return "", nil, nil
	}
	id = set.First.ID()
	script := fmt.Appendf(scripts.VirtualIP(), "%s %s\n", v, at.Prefix.Addr())
	out, err := s.Ask(ctx, id, Question{Name: "virtual-ip", Script: script, Bounds: virtualIPBounds})
	if err != nil {
		return "", nil, FactsError(id, err)
	}
	if told, err = facts.ParseVirtualIP(out); err != nil {
		return "", nil, FactsError(id, err, out...)
	}
	if told.Deaf {
		s.Tell(event.Event{Host: id, Kind: event.Warning, Text: id + ": it cannot listen for other VRRP routers: that none of them has the cluster's number is not known"})
	}
	return id, told, nil
}

// Network is what hosts that are no nodes yet need of the network, and what they found there, by their IDs.
type Network struct {
	Needs  map[string][]machine.RequiredEndpoint
	Found  map[string]map[facts.Endpoint]facts.Reach
	Offers map[string]*facts.AvailableVersions // of Kubernetes, by its repository
}

// Reach lets hosts that are no nodes yet try what they will have to connect to, tell which patches of Kubernetes and which containerd
// they can have, and those that are to get a driver how apt can install it. Others are not asked anything.
func (s *Session) Reach(ctx context.Context) (*Network, error) {
	needs, err := plan.RequiredEndpoints(s.Inventory, s.Facts)
	if err != nil {
		return nil, err
	}
	r := &Network{needs, map[string]map[facts.Endpoint]facts.Reach{}, map[string]*facts.AvailableVersions{}}
	lines, err := plan.OfferQuestions(s.Inventory, s.Facts)
	if err != nil {
		return nil, err
	}
	var asked []inventory.Host
	for _, h := range s.Inventory.Hosts {
		if f := s.Facts[h.ID()]; f != nil {
			for _, way := range machine.DriverWays(s.Inventory, f) {
				lines[h.ID()] = append(lines[h.ID()], "way "+way)
			}
		}
		if len(needs[h.ID()])+len(lines[h.ID()]) > 0 {
			asked = append(asked, h)
		}
	}
	var mu sync.Mutex
	err = Each(asked, func(h inventory.Host) error {
		script := bytes.NewBuffer(bytes.Clone(scripts.Reach()))
		for _, n := range needs[h.ID()] {
			fmt.Fprintln(script, n)
		}
		for _, line := range lines[h.ID()] {
			fmt.Fprintln(script, line)
		}
		out, err := s.Ask(ctx, h.ID(), Question{Name: "reach", Script: script.Bytes(), Bounds: FactsBounds, AsUser: true})
		if err != nil {
			return FactsError(h.ID(), err)
		}
		found, noReach := facts.ParseReach(out)
		ways, noWays := facts.ParseWays(out)
		offer, noOffer := facts.ParseAvailableVersions(out)
		containerd, noContainerd := facts.ParseContainerd(out)
		if err := cmp.Or(noReach, noWays, noOffer, noContainerd); err != nil {
			return FactsError(h.ID(), err, out...)
		}
		mu.Lock()
		defer mu.Unlock()
		r.Found[h.ID()], r.Offers[h.ID()], s.Facts[h.ID()].Ways, s.Facts[h.ID()].Containerd = found, offer, ways, containerd
		return nil
	})
	return r, err
}
