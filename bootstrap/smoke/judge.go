package smoke

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Judge compares the logs of the Jobs, a line "job<tab>line" each, with the GPUs that the hosts list. Each GPU must be
// seen by exactly one Job, or as many as share it, on its own node, and must compute there. A Job that requested none
// must see none. GPUs held by pods outside of the proof are no violation: as many may stay unseen as Jobs got none
// because of such pods. Every violation is a *reason.Error, and the table is nil if there is any.
func Judge(nodes []Node, logs string) (*Table, error) {
	j := &judge{seen: readLogs(logs), home: map[string]string{}, jobs: map[string][]string{}, held: map[string]*holding{}, idle: map[string]bool{}, full: map[string]int{}}
	for _, n := range nodes {
		for _, c := range n.Cards {
			j.home[c.UUID] = n.Name
		}
	}
	for _, n := range nodes {
		if len(n.Cards) == 0 {
			continue
		}
		for i := range n.asked() {
			j.cardJob(n, n.cardJob(i))
		}
		nvidia, plain := n.freeJobs()
		j.freeJob(n, nvidia, "of the RuntimeClass nvidia")
		j.freeJob(n, plain, "of the default runtime")
	}
	table := j.cover(nodes)
	for _, job := range slices.Sorted(maps.Keys(j.seen)) {
		j.errs = append(j.errs, fmt.Errorf("a log of %q, which is no Job of this proof", job))
	}
	if len(j.errs) > 0 {
		return nil, errors.Join(j.errs...)
	}
	return table, nil
}

type judge struct {
	seen map[string]*sight   // by Job; those that were checked are removed
	home map[string]string   // UUID → node whose host lists it
	jobs map[string][]string // UUID → Jobs that requested a GPU and see this one
	held map[string]*holding // by node
	idle map[string]bool     // UUID → it does not compute
	full map[string]int      // UUID → number of Jobs that found no free memory on it
	errs []error
}

// holding is the GPUs of a node that other pods hold.
type holding struct {
	cards int // number of Jobs that got no GPU
	pods  []string
}

func (j *judge) violation(id reason.ID, node Node, format string, args ...any) {
	j.errs = append(j.errs, &reason.Error{ID: id, Host: node.Name, Doing: "proving the cards", Detail: fmt.Sprintf(format, args...)})
}

// take returns what a Job saw; nil, with a violation, if its log is incomplete.
func (j *judge) take(n Node, job string) *sight {
	s := j.seen[job]
	delete(j.seen, job)
	switch {
	case s == nil:
		j.violation(reason.SmokeFailed, n, "Job %s printed nothing", job)
		return nil
	case !s.whole:
		j.violation(reason.SmokeFailed, n, "the log of Job %s has no end; its last line: %s", job, quote(s.last))
		return nil
	case s.status == timedOut, s.status == killed:
		j.violation(reason.SmokeFailed, n, "nvidia-smi in Job %s did not answer within a minute", job)
		return nil
	}
	return s
}

// cardJob checks a Job that requested one GPU.
func (j *judge) cardJob(n Node, job string) {
	if s := j.seen[job]; s != nil && len(s.held) > 0 {
		delete(j.seen, job)
		h := j.held[n.Name]
		if h == nil {
			h = &holding{}
			j.held[n.Name] = h
		}
		h.cards++
		h.pods = s.held // the same for all Jobs of a node
		return
	}
	s := j.take(n, job)
	if s == nil {
		return
	}
	if s.status != 0 {
		j.violation(reason.SmokeFailed, n, "nvidia-smi in Job %s ended with status %d: %s", job, s.status, quote(s.words))
	} else if len(s.all()) == 0 {
		j.violation(reason.SmokeFailed, n, "Job %s asked for a card and sees none: %s", job, quote(s.words))
	}
	given := j.given(s)
	found := given
	if len(s.devices) > len(found) {
		found = s.devices
	}
	if len(found) > 1 {
		j.violation(reason.SmokeCardLeaked, n, "Job %s asked for one card and sees %d: %s", job, len(found), list(found))
	}
	for _, uuid := range given {
		switch home, known := j.home[uuid]; {
		case !known:
			j.violation(reason.SmokeFailed, n, "Job %s sees the card %s, which no host lists", job, shorten(uuid))
		case home != n.Name:
			j.violation(reason.SmokeFailed, n, "Job %s sees the card %s, which is a card of %s", job, uuid, home)
		}
		j.jobs[uuid] = append(j.jobs[uuid], job)
	}
	if s.status == 0 && len(given) > 0 {
		j.compute(n, job, s, given[0])
	}
}

// compute checks what the sample program did on a GPU. A Job that shares it with pods that use all of its memory cannot
// run it.
func (j *judge) compute(n Node, job string, s *sight, uuid string) {
	i := slices.IndexFunc(n.Cards, func(c Card) bool { return c.UUID == uuid })
	name, did := "of another node", fmt.Sprintf("ended with status %d: %s", s.sample, quote(s.said))
	if i >= 0 {
		name = n.Cards[i].Name
	}
	if s.sample == timedOut || s.sample == killed {
		did = "did not end within a minute"
	}
	switch {
	case s.sample == 0 && s.passed, j.idle[uuid]:
	case s.sample < 0, notRun <= s.sample && s.sample <= notThere:
		j.violation(reason.SmokeFailed, n, "Job %s could not run its program that computes: %s", job, quote(s.said))
	case i >= 0 && n.Cards[i].Share > 1 && strings.Contains(s.said, "out of memory"):
		j.full[uuid]++
	default:
		j.idle[uuid] = true
		j.violation(reason.SmokeCannotCompute, n, "the card %s (%s) is listed and does not compute: vectorAdd in Job %s %s", shorten(uuid), name, job, did)
	}
}

// given returns what a Job was given of what it sees: MIG instances if pods get instances, else whole GPUs.
func (j *judge) given(s *sight) []string {
	if slices.ContainsFunc(s.instances, func(uuid string) bool { return j.home[uuid] != "" }) {
		return slices.Concat(s.instances, s.cards)
	}
	return slices.Concat(s.cut, s.cards)
}

// freeJob checks a Job that requested no GPU.
func (j *judge) freeJob(n Node, job, runtime string) {
	s := j.take(n, job)
	if s == nil {
		return
	}
	if found := slices.Concat(s.all(), s.devices); len(found) > 0 {
		j.violation(reason.SmokeCardLeaked, n, "Job %s %s asked for no card and sees %s", job, runtime, list(found))
	}
}

// cover makes the table, and finds GPUs that no Job saw, or fewer or more than share it.
func (j *judge) cover(nodes []Node) *Table {
	table := &Table{}
	for _, n := range nodes {
		held := j.held[n.Name]
		unseen := 0
		for _, c := range n.Cards {
			least, _ := n.sights(c)
			unseen += max(0, least-len(j.jobs[c.UUID]))
		}
		for _, c := range n.Cards {
			jobs := j.jobs[c.UUID]
			least, most := n.sights(c)
			row, names := Row{Node: n.Name, Card: c.Name, UUID: c.UUID}, strings.Join(jobs, ", ")
			if full := j.full[c.UUID]; full > 0 && full == len(jobs) {
				names += ", not computed: its memory is all taken"
			}
			switch {
			case len(jobs) >= least && len(jobs) <= most, held != nil && held.cards >= unseen && 0 < len(jobs) && len(jobs) < least:
				row.Job = names
			case len(jobs) > most:
				j.violation(reason.SmokeCardTwice, n, "the card %s (%s) is seen by the Jobs %s", c.UUID, c.Name, names)
			case held == nil && len(jobs) == 0:
				j.violation(reason.SmokeCardMissing, n, "no Job saw the card %s (%s)", c.UUID, c.Name)
			case held == nil:
				j.violation(reason.SmokeCardMissing, n, "the card %s (%s), which %d Jobs share, is seen only by %s", c.UUID, c.Name, least, names)
			case held.cards < unseen:
				j.violation(reason.SmokeCardMissing, n, "no Job saw the card %s (%s): the node has %s unseen, and %s can have %d of them", c.UUID, c.Name, plural.Of(unseen, "card"), list(held.pods), held.cards)
			default:
				row.Held = slices.Clone(held.pods)
			}
			if row.By() != "" {
				table.Rows = append(table.Rows, row)
			}
		}
	}
	return table
}

// list joins what a pod claims to see, for a message.
func list(words []string) string {
	const most = 16 // a host has no more GPUs
	var more string
	if len(words) > most {
		more = fmt.Sprintf(" and %d more", len(words)-most)
		words = words[:most]
	}
	short := make([]string, len(words))
	for i, w := range words {
		short[i] = shorten(w)
	}
	return strings.Join(short, ", ") + more
}

// shorten makes a word of a log printable and short.
func shorten(word string) string {
	const most = 80
	if len(word) > most {
		word = word[:most] + "…"
	}
	quoted := strconv.QuoteToGraphic(word)
	return quoted[1 : len(quoted)-1]
}
