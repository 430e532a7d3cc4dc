package scripts

import "testing"

// TestPods lists what a drain would move: no pods of DaemonSets, no mirrors, none that ended.
func TestPods(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("kubectl", `#!/bin/bash
printf '%s\t%s\t%s\t%s\t%s\n' w1 default/train-1 Running Job 'cpu nvidia.com/gpu ' w1 default/mine Pending '' '' \
  w1 kube-system/proxy Running DaemonSet '' w1 kube-system/etcd Running Node '' w1 default/done Succeeded Job 'nvidia.com/gpu ' \
  w2 default/instance Running ReplicaSet 'nvidia.com/mig-1g.5gb '
echo
`)
	r := s.ok(s.bash(stubbed(Pods())))
	if want := "w1\tdefault/train-1\tcards\nw1\tdefault/mine\t\nw2\tdefault/instance\tcards\n"; r.output != want {
		t.Errorf("pods:\n%s\nwant:\n%s", r.output, want)
	}
}
