package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Upgrade is what faults strike where a cluster goes from one Kubernetes to another.
type Upgrade struct{ From, To string }

// begin makes, undisturbed, the cluster that is to be upgraded, and writes the version that it is to have.
func (s *Storm) begin(ctx context.Context) error {
	if s.Upgrade == (Upgrade{}) {
		return nil
	}
	s.say("a cluster of Kubernetes %s", s.Upgrade.From)
	if err := s.Lab.writeInventory(ctx, s.Upgrade.From); err != nil {
		return err
	}
	if _, err := s.Lab.kgpuTo(ctx, "up", "--output", "json", s.Lab.inventory()); err != nil {
		return err
	}
	s.say("it is to have %s", s.Upgrade.To)
	return s.Lab.writeInventory(ctx, s.Upgrade.To)
}

// proven wants every card of an upgraded cluster to compute.
func (s *Storm) proven(ctx context.Context) error {
	if s.Upgrade == (Upgrade{}) {
		return nil
	}
	s.say("proving all cards")
	_, err := s.Lab.kgpuTo(ctx, "smoke", "--inventory", s.Lab.inventory())
	return err
}

// askNodes prints the nodes as the API server has them. What is asked for raw leaves no cache on the host.
const askNodes = "timeout 5 kubectl --kubeconfig=/etc/kubernetes/admin.conf get --raw /api/v1/nodes"

// mostOut is how many nodes kgpu may have out at a time: nobody says --max-unavailable.
const mostOut = 1

// watchNodes looks, until it is asked what it saw, whether more nodes are out at a time than was agreed. Nothing can be seen while the
// API server or its host is down; never to have seen a node go is an error.
func (s *Storm) watchNodes(ctx context.Context) (out func() error) {
	if s.Upgrade == (Upgrade{}) {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(ctx)
	seen := make(chan outages)
	go func() {
		o := outages{nodes: map[string]bool{}}
		for ctx.Err() == nil {
			text, err := s.Lab.exec(ctx, s.Lab.Hosts[0], askNodes)
			o.look(text, err)
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		seen <- o
	}()
	return func() error {
		stop()
		o := <-seen
		s.say("%d looks at the nodes: of %d that were out there were never more than %d at a time", o.looks, len(o.nodes), o.most)
		return o.verdict()
	}
}

// outages are the nodes that were seen out.
type outages struct {
	looks int             // that were answered
	most  int             // nodes at a time
	at    []string        // those, where they were too many
	nodes map[string]bool // all
}

// look takes an answer in, if it is whole.
func (o *outages) look(text string, err error) {
	var nodes struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Unschedulable bool }
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &nodes) != nil {
		return
	}
	o.looks++
	var list []string
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			list = append(list, node.Metadata.Name)
			o.nodes[node.Metadata.Name] = true
		}
	}
	if o.most = max(o.most, len(list)); len(list) > mostOut && o.at == nil {
		o.at = list
	}
}

// verdict says what is wrong with what was seen.
func (o *outages) verdict() error {
	switch {
	case len(o.nodes) == 0:
		return errors.New("no node was seen out: the watch is blind")
	case o.at != nil:
		return fmt.Errorf("out at the same time: %s", strings.Join(o.at, ", "))
	}
	return nil
}
