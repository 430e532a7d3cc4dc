package bootstrap

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// An inventory without a control plane cannot be loaded. A story of one all the same ends with an error.
func TestNoControlPlane(t *testing.T) {
	_, o := newSite(t, "cp1")
	o.Inventory.Hosts[0].Role = inventory.Worker
	s := session.New(o.Options)
	defer s.Close()
	if err := s.ConnectPlane(t.Context()); err == nil {
		t.Error("the control plane of a cluster without one was reached")
	}
	if _, err := Plan(t.Context(), o); err == nil {
		t.Error("a cluster without a control plane is planned")
	}
}

// What kubeadm warns of on several hosts is told once in a run, with their names, when it is known of all of them; what only one
// warns of has its name.
func TestWarningsAreToldOnce(t *testing.T) {
	s, o := newSite(t, "cp1", "w1", "w2")
	s.Warns = map[string]string{"cp1 cluster/init": "kubeadm: old\nkubeadm: Swap", "w1 cluster/join": "kubeadm: old", "w2 cluster/join": "kubeadm: old"}
	must(t, Up(t.Context(), o, func(*graph.Graph) error { return nil }))
	events := s.Events()
	var told []string
	for i, e := range events {
		if e.Kind == event.Warning && strings.Contains(e.Text, "kubeadm: ") {
			told = append(told, e.Host+e.Step+e.Text)
			if slices.ContainsFunc(events[i:], func(e event.Event) bool { return e.Kind == event.StepStart }) {
				t.Errorf("%q is told while steps are still to come", e.Text)
			}
		}
	}
	if want := []string{"cp1, w1, w2: kubeadm: old", "cp1: kubeadm: Swap"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}
