package bootstrap

import (
	"bytes"
	"context"
	"fmt"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// reaches is what the hosts need of the network, and what they found.
type reaches struct {
	needs map[string][]plan.Need
	found map[string]map[facts.Endpoint]facts.Reach

	offers map[string]*facts.Offer // of Kubernetes
}

// reach lets hosts that are no nodes yet try what they will have to connect to, tell which patches of Kubernetes and which containerd
// they can have, and those that are to get a driver how apt can install it. Others are not asked anything.
func (s *session) reach(ctx context.Context) (*reaches, error) {
	needs, err := plan.Needs(s.Inventory, s.facts)
	if err != nil {
		return nil, err
	}
	r := &reaches{needs: needs, found: map[string]map[facts.Endpoint]facts.Reach{}, offers: map[string]*facts.Offer{}}
	lines, err := plan.OfferQuestions(s.Inventory, s.facts)
	if err != nil {
		return nil, err
	}
	var asked []inventory.Host
	for _, h := range s.Inventory.Hosts {
		if f := s.facts[h.ID()]; f != nil {
			for _, way := range plan.DriverWays(s.Inventory, f) {
				lines[h.ID()] = append(lines[h.ID()], "way "+way)
			}
		}
		if len(needs[h.ID()])+len(lines[h.ID()]) > 0 {
			asked = append(asked, h)
		}
	}
	err = each(asked, func(h inventory.Host) error {
		script := bytes.NewBuffer(bytes.Clone(scripts.Reach()))
		for _, n := range needs[h.ID()] {
			fmt.Fprintln(script, n)
		}
		for _, line := range lines[h.ID()] {
			fmt.Fprintln(script, line)
		}
		var out []byte
		err := s.steadily(ctx, h.ID(), func(host *remote.Host) (err error) {
			out, err = host.Output(ctx, remote.Command{Name: "reach", Line: "bash -s", Stdin: bytes.NewReader(script.Bytes())}, factsBounds)
			return err
		})
		if err != nil {
			return factsError(h.ID(), err)
		}
		found, err := facts.ParseReach(out)
		if err != nil {
			return factsError(h.ID(), err, out...)
		}
		ways, err := facts.ParseWays(out)
		if err != nil {
			return factsError(h.ID(), err, out...)
		}
		offer, err := facts.ParseOffer(out)
		if err != nil {
			return factsError(h.ID(), err, out...)
		}
		containerd, err := facts.ParseContainerd(out)
		if err != nil {
			return factsError(h.ID(), err, out...)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		r.found[h.ID()], r.offers[h.ID()], s.facts[h.ID()].Ways, s.facts[h.ID()].Containerd = found, offer, ways, containerd
		return nil
	})
	return r, err
}
