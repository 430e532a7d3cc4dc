package report

import (
	"bytes"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
)

// A worker is lost, told as waited for, and left behind; another one that was away is back; what was left out for the
// first one's sake is done in the end.
func TestWhatIsLeft(t *testing.T) {
	begin := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	events := []event.Event{
		{Kind: event.Plan},
		{Host: "cp1", Step: "cluster/init", Kind: event.StepStart, Text: "start the control plane (kubeadm init)"},
		{Host: "w1", Step: "cluster/join", Kind: event.Wait, Text: "for cp1: cluster/token"},
		{Host: "cp1", Step: "cluster/init", Kind: event.StepDone, Millis: 31000},
		{Host: "w2", Step: "kube/packages", Kind: event.StepStart, Text: "install kubeadm"},
		{Host: "w2", Kind: event.Wait, Reason: "SSH_LOST", Text: "connection lost 17s ago; giving up in 10m0s, trying again"},
		{Host: "w3", Kind: event.Wait, Reason: "SSH_LOST", Text: "connection lost 16s ago; giving up in 10m0s, trying again"},
		{Host: "w3", Kind: event.Wait, Reason: "SSH_LOST", Text: "the connection is back", Millis: 63000},
		{Host: "w2", Kind: event.Wait, Reason: "SSH_LOST", Text: "connection lost 27s ago; giving up in 9m50s, trying again in 4s (no route to host)"},
		{Host: "w2", Step: "kube/packages", Kind: event.Error, Reason: "SSH_LOST", Text: "the host did not come back"},
		{Host: "w2", Step: "cluster/join", Kind: event.StepSkip, Reason: "SSH_LOST", Text: "not begun, because w2 kube/packages failed"},
		{Host: "w2", Step: "a", Kind: event.StepSkip, Reason: "SSH_LOST", Text: "not begun, because w2 kube/packages failed"},
		{Host: "w2", Step: "b", Kind: event.StepSkip, Reason: "SSH_LOST", Text: "not begun, because w2 kube/packages failed"},
		{Host: "cp1", Step: "cluster/ready", Kind: event.StepSkip, Reason: "SSH_LOST", Text: "not begun, because w2 kube/packages failed"},
		{Host: "cp1", Step: "gpu/ready", Kind: event.StepSkip, Reason: "SSH_LOST", Text: "not begun, because w2 kube/packages failed"},
		{Host: "w2", Kind: event.Warning, Reason: "SSH_LOST", Text: "w2 is excluded; the other hosts are made ready"},
		{Host: "w3", Step: "os/time", Kind: event.StepDone, Millis: 10},
		{Host: "w3", Kind: event.Warning, Reason: "SSH_LOST", Text: "w3 is excluded; the other hosts are made ready"},
		{Host: "cp1", Step: "cluster/ready", Kind: event.StepStart, Text: "wait until all nodes are ready"},
		{Host: "cp1", Step: "cluster/ready", Kind: event.StepDone, Millis: 1500},
		{Kind: event.Result, Reason: "SSH_LOST", Text: "failed; this carries on: kgpu up --inventory inventory.yaml"},
	}
	var out bytes.Buffer
	s := New(Plain, &out, Normal)
	for i, e := range events {
		e.Time = begin.Add(time.Duration(i) * time.Second)
		s.Emit(e)
	}
	must(t, s.Close())
	golden(t, "left.txt", out.String())
}
