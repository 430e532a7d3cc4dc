package history

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// Last is the word for the newest run in which a step began: one that found nothing to do, or was refused, hides no other.
const Last = "last"

// Find returns the run that a person means: by its ID, by the beginning of it, or the last one, where the word is empty
// or "last". The runs are List's. An error is for who typed the word.
func Find(runs []Run, word string) (Run, error) {
	if len(runs) == 0 {
		return Run{}, errors.New("no run is recorded yet: commands that change hosts or the cluster leave one each, such as kgpu up")
	}
	if word == "" || word == Last {
		return runs[max(slices.IndexFunc(runs, Run.Stepped), 0)], nil
	}
	var ids []string
	var found []Run
	for _, r := range runs {
		ids = append(ids, r.Run)
		if strings.HasPrefix(r.Run, word) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return Run{}, fmt.Errorf("no run %q.%s kgpu runs lists them", word, nearest.Hint(word, append(ids, Last)))
	case 1:
		return found[0], nil
	}
	return Run{}, fmt.Errorf("%d runs begin with %q, the newest is %s (kgpu runs lists them)", len(found), word, found[0].Run)
}

// hint names the one of these that word is most likely a misspelling of, or a few of them.
func hint(word string, names map[string]bool) string {
	known := slices.Sorted(maps.Keys(names))
	best := nearest.Word(word, known)
	switch {
	case best != "":
		return fmt.Sprintf(". Did you mean %q?", best)
	case len(known) > shortList:
		return fmt.Sprintf("; there are %s, and %d more", strings.Join(known[:shortList], ", "), len(known)-shortList)
	case len(known) > 0:
		return "; there are " + strings.Join(known, ", ")
	}
	return ""
}

// shortList is how many names a person reads.
const shortList = 8

// Lines selects, of a run's events, what steps printed and how they, or the run, failed: all, or a host's, or a step's; of
// the steps that failed only. An error is for who typed the host or the step.
func Lines(events iter.Seq[event.Event], host, step string, failed bool) (iter.Seq[event.Event], error) {
	hosts, steps, bad := map[string]bool{}, map[string]bool{}, map[event.Ref]bool{}
	for e := range events {
		if e.Step == "" && e.Kind != event.Error {
			continue
		}
		hosts[e.Host] = true
		if e.Step == "" {
			continue
		}
		if host == "" || e.Host == host {
			steps[e.Step] = true
		}
		if e.Kind == event.Error {
			bad[e.Ref()] = true
		}
	}
	if host != "" && !hosts[host] {
		return nil, fmt.Errorf("no step of this run on a host %q%s", host, hint(host, hosts))
	}
	if step != "" && !steps[step] {
		return nil, fmt.Errorf("no step %q in this run%s", step, hint(step, steps))
	}
	return func(yield func(event.Event) bool) {
		for e := range events {
			switch {
			case e.Kind != event.Error && (e.Kind != event.Log || e.Step == ""):
			case host != "" && e.Host != host, step != "" && e.Step != step, failed && e.Step != "" && !bad[e.Ref()]:
			case !yield(e):
				return
			}
		}
	}, nil
}
