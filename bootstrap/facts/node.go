package facts

import (
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Node is a node object.
type Node struct {
	Name               string
	UID                string
	Ready              bool
	Since              time.Time // when Ready last changed; zero if unknown
	Reason, Message    string    // of the condition Ready
	NetworkUnavailable bool
	Conditions         map[string]string // all conditions by type: True, False, or Unknown if the kubelet reports nothing
	GPUHealthMessage   string            // message of the condition GPUHealthy
	Version            string            // the kubelet's
	Runtime            string            // docker://26.1.5
	Kernel, OS         string
	InternalIP         string
	Labels             map[string]string
	Taints             []string // key=value:Effect
	Unschedulable      bool
	GPULabels          []string // labels that kgpu set in place of gpu-feature-discovery: annotation kgpu.dev/gpu-labels

	// Capacity and Allocatable are the node's NVIDIA resources, by name.
	Capacity, Allocatable map[string]int
}

// Pressure lists the conditions of resource pressure under which the node takes no pods.
func (n *Node) Pressure() (out []string) {
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
		if n.Conditions[kind] == "True" {
			out = append(out, kind)
		}
	}
	return out
}

// ParseNode parses the fields of a line of scripts/lib/nodes.sh's template, whose empty trailing fields may be missing.
// Text from the kubelet is made printable. Invalid numbers and times are ignored. ok is false if there is no name.
func ParseNode(fields []string) (n Node, ok bool) {
	var f [21]string
	for i := range min(len(fields), len(f)) {
		f[i] = InLine(fields[i])
	}
	return Node{
		Name: f[1], UID: f[2], Ready: f[3] == "True", NetworkUnavailable: f[4] == "True", Version: f[5], Runtime: f[6], InternalIP: firstWord(f[7]),
		Unschedulable: f[8] == "true", Labels: pairs(f[9]), Taints: taints(strings.Fields(f[10])), Capacity: amounts(f[11]), Allocatable: amounts(f[12]),
		GPULabels: splitCommas(f[13]), Conditions: pairs(f[14]), Since: parseTime(f[15]), Reason: f[16], Message: f[17], GPUHealthMessage: f[18], Kernel: f[19], OS: f[20],
	}, f[1] != ""
}

// InLine unescapes a value of a script's template, which may be hostile, and makes it one printable line.
func InLine(escaped string) string {
	return printable.Line(strings.NewReplacer("\n", " ", "\t", " ").Replace(unescaped(escaped)))
}

// pairs reads words such as Ready=True; nil if there are none.
func pairs(words string) map[string]string {
	var all map[string]string
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		put(&all, key, value)
	}
	return all
}

// splitCommas splits a comma-separated list; nil if it is empty.
func splitCommas(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// taints reads words key=value:Effect. A taint without a value becomes key:Effect, as kubectl writes it.
func taints(words []string) []string {
	var list []string
	for _, word := range words {
		list = append(list, strings.Replace(word, "=:", ":", 1))
	}
	return list
}

// amounts adds up words such as nvidia.com/gpu=2, by resource; nil if there are none.
func amounts(words string) map[string]int {
	return collect(words, func(have, more int) int { return have + more })
}

// largest takes the largest amount of each resource.
func largest(words string) map[string]int {
	return collect(words, func(have, more int) int { return max(have, more) })
}

func collect(words string, join func(have, more int) int) map[string]int {
	var out map[string]int
	for word := range strings.FieldsSeq(words) {
		what, much, _ := strings.Cut(word, "=")
		if n, ok := Quantity(much); ok {
			put(&out, what, join(out[what], n))
		}
	}
	return out
}

// Quantity reads an integer in Kubernetes' notation: 1k is 1000. ok is false if s is none.
// Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.
func Quantity(s string) (n int, ok bool) {
	const most = 1_000_000 // an upper limit, as a node may report anything
	digits, thousands := strings.CutSuffix(s, "k")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > most {
		return 0, false
	}
	if thousands {
		n *= 1000
	}
	return n, true
}

// unescaped reverses the escapes of the template function js: \u003D, and \x3D of Go's older versions, are an equals
// sign.
func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for s != "" {
		if rest, ok := strings.CutPrefix(s, `\'`); ok {
			b.WriteByte('\'')
			s = rest
			continue
		}
		c, _, rest, err := strconv.UnquoteChar(s, '"')
		if err != nil { // not an escape of js
			c, rest = rune(s[0]), s[1:]
		}
		b.WriteRune(c)
		s = rest
	}
	return b.String()
}
