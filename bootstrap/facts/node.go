package facts

import (
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/printable"
)

// Node is a node object.
type Node struct {
	Name               string
	UID                string
	Ready              bool
	Since              time.Time // it is ready, or is not; zero: unknown
	Reason, Message    string    // of the condition Ready
	NetworkUnavailable bool
	Conditions         map[string]string // all of them, by type: True, False, or Unknown when the kubelet is silent
	WatchSays          string            // message of the condition GPUHealthy
	Version            string            // kubelet's
	Runtime            string            // docker://26.1.5
	Kernel, OS         string
	InternalIP         string
	Labels             map[string]string
	Taints             []string // key=value:Effect
	Unschedulable      bool
	GPULabels          []string // the labels that kgpu put there for gpu-feature-discovery: annotation kgpu.dev/gpu-labels

	// What it has of NVIDIA's resources, and how much of that pods can have.
	Capacity, Allocatable map[string]int
}

// Pressure names what the node has too little of, so that it takes no pods.
func (n *Node) Pressure() (out []string) {
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
		if n.Conditions[kind] == "True" {
			out = append(out, kind)
		}
	}
	return out
}

// ParseNode reads the fields of a line of the template of scripts/lib/nodes.sh. Trailing ones that are empty may be trimmed. What
// a kubelet wrote is made fit to be printed in a line; what is no number, or no time, must not hide the rest. ok is false where
// there is no name.
func ParseNode(fields []string) (n Node, ok bool) {
	var f [21]string
	for i := range min(len(fields), len(f)) {
		f[i] = InLine(fields[i])
	}
	return Node{
		Name: f[1], UID: f[2], Ready: f[3] == "True", NetworkUnavailable: f[4] == "True", Version: f[5], Runtime: f[6], InternalIP: firstWord(f[7]),
		Unschedulable: f[8] == "true", Labels: pairs(f[9]), Taints: taints(strings.Fields(f[10])), Capacity: amounts(f[11]), Allocatable: amounts(f[12]),
		GPULabels: listed(f[13]), Conditions: pairs(f[14]), Since: moment(f[15]), Reason: f[16], Message: f[17], WatchSays: f[18], Kernel: f[19], OS: f[20],
	}, f[1] != ""
}

// InLine is what the script's templates were given, which others may write as they like, on one line that can be printed.
func InLine(escaped string) string {
	return printable.Line(strings.NewReplacer("\n", " ", "\t", " ").Replace(unescaped(escaped)))
}

// pairs reads words such as Ready=True; nil: there are none.
func pairs(words string) map[string]string {
	var all map[string]string
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		put(&all, key, value)
	}
	return all
}

// listed takes a list apart whose parts have commas between them.
func listed(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// taints reads key=value:Effect; a taint without a value is key:Effect, as kubectl writes it.
func taints(words []string) []string {
	var list []string
	for _, word := range words {
		list = append(list, strings.Replace(word, "=:", ":", 1))
	}
	return list
}

// amounts adds up words such as nvidia.com/gpu=2, by resource; nil: there are none.
func amounts(words string) map[string]int {
	return collect(words, func(have, more int) int { return have + more })
}

// most is the largest for each resource.
func most(words string) map[string]int {
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

// Quantity reads a number of cards as Kubernetes writes it: 1000 is 1k. ok is false for what is none.
// Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.
func Quantity(s string) (n int, ok bool) {
	const most = 1_000_000 // of whatever a node may say that it has
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

// unescaped is what the template's js was given: \u003D and, of Go's older versions, \x3D are an equals sign.
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
		if err != nil { // nothing that js writes
			c, rest = rune(s[0]), s[1:]
		}
		b.WriteRune(c)
		s = rest
	}
	return b.String()
}
