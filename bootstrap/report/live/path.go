package live

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// criticalPath is the longest chain of steps that are not done, each of which needs the one before.
func (s *State) criticalPath() []*step {
	length, before := make(map[*step]int, len(s.steps)), map[*step]*step{}
	var last *step
	for _, t := range s.steps {
		if !t.open() {
			continue
		}
		length[t] = 1
		for _, need := range t.needs {
			if length[need] >= length[t] { // those that are not open have none
				length[t], before[t] = length[need]+1, need
			}
		}
		if last == nil || length[t] > length[last] {
			last = t
		}
	}
	var chain []*step
	for t := last; t != nil; t = before[t] {
		chain = append(chain, t)
	}
	slices.Reverse(chain)
	return chain
}

// pathWords is the chain in at most width cells: its begin and its end, or its begin, with the host where it changes.
func pathWords(chain []*step, width int) string {
	const arrow = " → "
	for shown := len(chain); shown > 1; shown-- {
		var words []string
		host := ""
		for _, t := range chain[:shown-1] {
			words, host = append(words, place(t, host)), t.Host
		}
		if shown < len(chain) {
			words = append(words, overflow)
		}
		words = append(words, place(chain[len(chain)-1], host))
		if text := strings.Join(words, arrow); ansi.StringWidthWc(text) <= width {
			return text
		}
	}
	return cut(place(chain[0], "")+arrow+overflow, width)
}

// place is a step, with its host unless that is the one before.
func place(t *step, host string) string {
	if t.Host == host {
		return t.Step
	}
	return t.Host + " " + t.Step
}
