package run

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// What a host is believed that its steps warn of: an honest one has a handful of warnings, of a few hundred bytes.
const (
	mostWarnings = 10
	mostWarning  = 1 << 10 // bytes
)

// Warning is what steps warned of, and the hosts on which they did, in the order in which that was heard.
type Warning struct {
	Text  string
	Hosts []string
}

// Warnings collects what the steps of a run warn of, each warning once. The zero value is ready, and it is safe for concurrent use.
type Warnings struct {
	mu   sync.Mutex
	list []*Warning
	of   map[string]int // how many a host has
}

// add takes a warning of a host's.
func (w *Warnings) add(host, text string) {
	if w == nil {
		return
	}
	text = printable.Short(text, mostWarning)
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.list, func(known *Warning) bool { return known.Text == text })
	if i >= 0 && slices.Contains(w.list[i].Hosts, host) {
		return
	}
	if w.of == nil {
		w.of = map[string]int{}
	}
	if w.of[host]++; w.of[host] > mostWarnings {
		return
	}
	if i < 0 {
		i = len(w.list)
		w.list = append(w.list, &Warning{Text: text})
	}
	w.list[i].Hosts = append(w.list[i].Hosts, host)
}

// Take returns what was collected since the last time.
func (w *Warnings) Take() []Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Warning
	for _, known := range w.list {
		out = append(out, *known)
	}
	for _, host := range slices.Sorted(maps.Keys(w.of)) {
		if n := w.of[host]; n > mostWarnings {
			out = append(out, Warning{Text: fmt.Sprintf("%s more, which its log has", plural.Of(n-mostWarnings, "warning")), Hosts: []string{host}})
		}
	}
	w.list, w.of = nil, nil
	return out
}
