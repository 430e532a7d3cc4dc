package facts

import (
	"strings"
	"testing"
)

// TestNodeTextIsPrintable: what a kubelet writes into its node becomes printable text of one line, and does not spoil
// other fields.
func TestNodeTextIsPrintable(t *testing.T) {
	const lie = `x\u001B]0;evil\u0007\u000Anode\u0009cp1\u202e y`
	fields := strings.Split("node\tw1\tu\tTrue"+strings.Repeat("\t"+lie, 17), "\t")
	n, ok := ParseNode(fields)
	if !ok || n.Name != "w1" || !n.Ready || n.Unschedulable || n.NetworkUnavailable {
		t.Errorf("%+v", n)
	}
	for what, text := range map[string]string{"version": n.Version, "runtime": n.Runtime, "kernel": n.Kernel, "system": n.OS, "reason": n.Reason, "message": n.Message, "watch": n.GPUHealthMessage} {
		if text != "x node cp1 y" {
			t.Errorf("%s: %q", what, text)
		}
	}
	if n.InternalIP != "x" || n.Capacity != nil || n.Allocatable != nil || !n.Since.IsZero() {
		t.Errorf("%+v", n)
	}
	if _, ok := ParseNode([]string{"node"}); ok {
		t.Error("a node without a name")
	}
}

func TestPressure(t *testing.T) {
	n, _ := ParseNode(strings.Split("node\tw1"+strings.Repeat("\t", 13)+"PIDPressure=True DiskPressure=Unknown MemoryPressure=True Ready=True ", "\t"))
	if got := strings.Join(n.Pressure(), " "); got != "MemoryPressure PIDPressure" {
		t.Errorf("%q", got)
	}
}
