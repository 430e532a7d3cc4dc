package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// dump logs what a person wants to see after a failure.
func (l *lab) dump(t *testing.T) {
	for _, host := range l.names(t) {
		for _, script := range []string{
			"journalctl -n 100 --no-pager",
			"for f in /var/lib/kgpu/run/*/events; do [ ! -e $f ] || { echo == $f; tail -n 40 $f; }; done",
			"[ ! -e /etc/kubernetes/admin.conf ] || kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes,pods -A -o wide",
		} {
			out, errs, _ := l.run(t, "exec", host, "bash", "-c", script)
			t.Logf("%s: %s\n%s\n%s", host, script, out, errs)
		}
	}
	if log, err := os.ReadFile(filepath.Join(l.State, "internet.log")); err == nil {
		t.Logf("the end of the lab's internet log:\n%s", log[max(0, len(log)-4000):])
	}
}
