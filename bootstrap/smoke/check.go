package smoke

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// CheckProof compares the logs of the Jobs, a line "job<tab>line" each, with the GPUs that the hosts list. Each GPU must be
// seen by exactly one Job, or as many as share it, on its own node, and must compute there. A Job that requested none
// must see none. GPUs held by pods outside of the proof are no violation: as many may stay unseen as Jobs got none
// because of such pods. Every violation is a *reason.Error, and the table is nil if there is any.
func CheckProof(nodes []Node, logs string) (*Table, error) {
	j := &proofCheck{logs: readLogs(logs), nodeOf: map[string]string{}, jobs: map[string][]string{}, heldBy: map[string]*heldGPUs{}, idle: map[string]bool{}, full: map[string]int{}}
	for _, n := range nodes {
		for _, c := range n.GPUs {
			j.nodeOf[c.UUID] = n.Name
		}
	}
	for _, n := range nodes {
		if len(n.GPUs) == 0 {
			continue
		}
		for i := range n.requests() {
			j.checkGPUJob(n, n.gpuJob(i))
		}
		nvidia, plain := n.plainJobs()
		j.checkPlainJob(n, nvidia, "of the RuntimeClass nvidia")
		j.checkPlainJob(n, plain, "of the default runtime")
	}
	table := j.makeTable(nodes)
	for _, job := range slices.Sorted(maps.Keys(j.logs)) {
		j.errs = append(j.errs, fmt.Errorf("a log of %q, which is no Job of this proof", job))
	}
	if len(j.errs) > 0 {
		return nil, errors.Join(j.errs...)
	}
	return table, nil
}

type proofCheck struct {
	logs   map[string]*jobLog   // by Job; those that were checked are removed
	nodeOf map[string]string    // UUID → node whose host lists it
	jobs   map[string][]string  // UUID → Jobs that requested a GPU and see this one
	heldBy map[string]*heldGPUs // by node
	idle   map[string]bool      // UUID → it does not compute
	full   map[string]int       // UUID → number of Jobs that found no free memory on it
	errs   []error
}

// heldGPUs is the GPUs of a node that other pods hold.
type heldGPUs struct {
	count int // number of Jobs that got no GPU
	pods  []string
}

func (j *proofCheck) violation(id reason.ID, node Node, format string, args ...any) {
	j.errs = append(j.errs, &reason.Error{ID: id, Host: node.Name, Doing: "proving the GPUs", Detail: fmt.Sprintf(format, args...)})
}

// takeLog returns what a Job saw; nil, with a violation, if its log is incomplete.
func (j *proofCheck) takeLog(n Node, job string) *jobLog {
	s := j.logs[job]
	delete(j.logs, job)
	switch {
	case s == nil:
		j.violation(reason.SmokeFailed, n, "Job %s printed nothing", job)
		return nil
	case !s.complete:
		j.violation(reason.SmokeFailed, n, "the log of Job %s has no end; its last line: %s", job, quote(s.lastLine))
		return nil
	case s.status == timedOut, s.status == killed:
		j.violation(reason.SmokeFailed, n, "nvidia-smi in Job %s did not answer within a minute", job)
		return nil
	}
	return s
}

// checkGPUJob checks a Job that requested one GPU.
func (j *proofCheck) checkGPUJob(n Node, job string) {
	if s := j.logs[job]; s != nil && len(s.holders) > 0 {
		delete(j.logs, job)
		h := j.heldBy[n.Name]
		if h == nil {
			h = &heldGPUs{}
			j.heldBy[n.Name] = h
		}
		h.count++
		h.pods = s.holders // the same for all Jobs of a node
		return
	}
	s := j.takeLog(n, job)
	if s == nil {
		return
	}
	if s.status != 0 {
		j.violation(reason.SmokeFailed, n, "nvidia-smi in Job %s ended with status %d: %s", job, s.status, quote(s.tellingLine))
	} else if len(s.all()) == 0 {
		j.violation(reason.SmokeFailed, n, "Job %s asked for a GPU and sees none: %s", job, quote(s.tellingLine))
	}
	given := j.given(s)
	found := given
	if len(s.devices) > len(found) {
		found = s.devices
	}
	if len(found) > 1 {
		j.violation(reason.SmokeCardLeaked, n, "Job %s asked for one GPU and sees %d: %s", job, len(found), list(found))
	}
	for _, uuid := range given {
		switch home, known := j.nodeOf[uuid]; {
		case !known:
			j.violation(reason.SmokeFailed, n, "Job %s sees the GPU %s, which no host lists", job, shorten(uuid))
		case home != n.Name:
			j.violation(reason.SmokeFailed, n, "Job %s sees the GPU %s, which is a GPU of %s", job, uuid, home)
		}
		j.jobs[uuid] = append(j.jobs[uuid], job)
	}
	if s.status == 0 && len(given) > 0 {
		j.compute(n, job, s, given[0])
	}
}

// compute checks what the sample program did on a GPU. A Job that shares it with pods that use all of its memory cannot
// run it.
func (j *proofCheck) compute(n Node, job string, s *jobLog, uuid string) {
	i := slices.IndexFunc(n.GPUs, func(c GPU) bool { return c.UUID == uuid })
	name, did := "of another node", fmt.Sprintf("ended with status %d: %s", s.sample, quote(s.sampleLine))
	if i >= 0 {
		name = n.GPUs[i].Name
	}
	if s.sample == timedOut || s.sample == killed {
		did = "did not end within a minute"
	}
	switch {
	case s.sample == 0 && s.passed, j.idle[uuid]:
	case s.sample < 0, notRun <= s.sample && s.sample <= notThere:
		j.violation(reason.SmokeFailed, n, "Job %s could not run its program that computes: %s", job, quote(s.sampleLine))
	case i >= 0 && n.GPUs[i].Share > 1 && strings.Contains(s.sampleLine, "out of memory"):
		j.full[uuid]++
	default:
		j.idle[uuid] = true
		j.violation(reason.SmokeCannotCompute, n, "the GPU %s (%s) is listed and does not compute: vectorAdd in Job %s %s", shorten(uuid), name, job, did)
	}
}

// given returns what a Job was given of what it sees: MIG instances if pods get instances, else whole GPUs.
func (j *proofCheck) given(s *jobLog) []string {
	if slices.ContainsFunc(s.instances, func(uuid string) bool { return j.nodeOf[uuid] != "" }) {
		return slices.Concat(s.instances, s.cards)
	}
	return slices.Concat(s.migCards, s.cards)
}

// checkPlainJob checks a Job that requested no GPU.
func (j *proofCheck) checkPlainJob(n Node, job, runtime string) {
	s := j.takeLog(n, job)
	if s == nil {
		return
	}
	if found := slices.Concat(s.all(), s.devices); len(found) > 0 {
		j.violation(reason.SmokeCardLeaked, n, "Job %s %s asked for no GPU and sees %s", job, runtime, list(found))
	}
}

// makeTable makes the table, and finds GPUs that no Job saw, or fewer or more than share it.
func (j *proofCheck) makeTable(nodes []Node) *Table {
	table := &Table{}
	for _, n := range nodes {
		held := j.heldBy[n.Name]
		unseen := 0
		for _, c := range n.GPUs {
			least, _ := n.expectedJobs(c)
			unseen += max(0, least-len(j.jobs[c.UUID]))
		}
		for _, c := range n.GPUs {
			jobs := j.jobs[c.UUID]
			least, most := n.expectedJobs(c)
			row, names := Row{Node: n.Name, Card: c.Name, UUID: c.UUID}, strings.Join(jobs, ", ")
			if full := j.full[c.UUID]; full > 0 && full == len(jobs) {
				names += ", not computed: its memory is all taken"
			}
			switch {
			case len(jobs) >= least && len(jobs) <= most, held != nil && held.count >= unseen && 0 < len(jobs) && len(jobs) < least:
				row.Job = names
			case len(jobs) > most:
				j.violation(reason.SmokeCardTwice, n, "the GPU %s (%s) is seen by the Jobs %s", c.UUID, c.Name, names)
			case held == nil && len(jobs) == 0:
				j.violation(reason.SmokeCardMissing, n, "no Job saw the GPU %s (%s)", c.UUID, c.Name)
			case held == nil:
				j.violation(reason.SmokeCardMissing, n, "the GPU %s (%s), which %d Jobs share, is seen only by %s", c.UUID, c.Name, least, names)
			case held.count < unseen:
				j.violation(reason.SmokeCardMissing, n, "no Job saw the GPU %s (%s): the node has %s unseen, and %s can have %d of them", c.UUID, c.Name, plural.Of(unseen, "GPU"), list(held.pods), held.count)
			default:
				row.Holders = slices.Clone(held.pods)
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
