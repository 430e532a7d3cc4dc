package smoke

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// These mark lines of a pod's log that nvidia-smi does not print itself.
const (
	statusMark = "kgpu-status"
	deviceMark = "kgpu-device"
	sampleMark = "kgpu-sample" // exit status of the sample program
	saidMark   = "kgpu-said"   // a line of its output
	endMark    = "kgpu-end"
)

// heldMark is printed by the step in place of the log of a Job that got no GPU, with a pod that may hold it.
const heldMark = "kgpu-held"

// These are exit statuses of timeout(1): the program timed out, had to be killed, could not be run, or does not exist.
const timedOut, killed, notRun, notThere = 124, 137, 125, 127

// passed is the sample program's output if its sums are right.
const passed = "Test PASSED"

// jobLog is what one Job saw.
type jobLog struct {
	cards       []string // UUIDs of GPUs without MIG instances
	migCards    []string // UUIDs of GPUs with MIG instances
	instances   []string // UUIDs of MIG instances
	devices     []string // device files: /dev/nvidia0, …
	status      int      // exit status of nvidia-smi; -1 if it is missing
	complete    bool     // the log is complete
	lastLine    string   // nvidia-smi's last line
	tellingLine string   // nvidia-smi's most telling line
	sample      int      // exit status of the sample program; -1 if it did not run
	passed      bool     // it printed that its sums are right
	sampleLine  string   // its most telling line
	holders     []string // pods outside of the proof that hold the GPUs it could not get
}

// trouble matches lines that tell what went wrong: "Failed to initialize NVML: Driver/library version mismatch".
var trouble = regexp.MustCompile(`(?i)fail|error|unable|couldn't`)

// moreTelling returns the more telling of a program's lines. The one that tells what went wrong need not be the last: nvidia-smi
// prints a version or advice below it, and the sample what it buffered before.
func moreTelling(words, line string) string {
	line = strings.TrimSpace(line)
	if line == "" || trouble.MatchString(words) && !trouble.MatchString(line) {
		return words
	}
	return line
}

// all returns the GPUs and instances that the Job sees.
func (s *jobLog) all() []string { return slices.Concat(s.migCards, s.cards, s.instances) }

// gpuLine matches "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-…)", as nvidia-smi -L prints it.
var gpuLine = regexp.MustCompile(`^GPU [0-9]+: .* \(UUID: (GPU-[0-9A-Za-z-]+)\)$`)

// instanceLine matches "  MIG 1g.5gb      Device  0: (UUID: MIG-…)", which follows the line of its GPU.
var instanceLine = regexp.MustCompile(`^ +MIG [0-9a-z.+]+ +Device +[0-9]+: \(UUID: (MIG-[0-9A-Za-z/-]+)\)$`)

// readLogs parses the lines "job<tab>line" of all Jobs. A pod may print anything, but not for another Job, and nothing
// after its end mark counts.
func readLogs(logs string) map[string]*jobLog {
	seen := map[string]*jobLog{}
	for line := range strings.Lines(logs) {
		job, text, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if !ok {
			continue
		}
		s := seen[job]
		if s == nil {
			s = &jobLog{status: -1, sample: -1}
			seen[job] = s
		}
		s.line(text)
	}
	return seen
}

func (s *jobLog) line(text string) {
	if s.complete {
		return
	}
	mark, rest, _ := strings.Cut(text, " ")
	switch {
	case mark == statusMark:
		setStatus(&s.status, rest)
	case mark == sampleMark:
		setStatus(&s.sample, rest)
	case mark == deviceMark:
		s.devices = append(s.devices, rest)
	case mark == saidMark:
		s.passed = s.passed || rest == passed
		s.sampleLine = moreTelling(s.sampleLine, rest)
	case mark == heldMark && rest != "":
		s.holders = append(s.holders, rest)
	case text == endMark:
		s.complete = true
	default:
		s.listed(text)
	}
}

// setStatus sets an exit status to that in a text, if there is one.
func setStatus(to *int, text string) {
	if n, err := strconv.Atoi(text); err == nil {
		*to = n
	}
}

// listed reads a line of nvidia-smi.
func (s *jobLog) listed(text string) {
	if m := gpuLine.FindStringSubmatch(text); m != nil && !slices.Contains(s.all(), m[1]) {
		s.cards = append(s.cards, m[1])
	}
	if m := instanceLine.FindStringSubmatch(text); m != nil && !slices.Contains(s.instances, m[1]) {
		s.instances = append(s.instances, m[1])
		if n := len(s.cards); n > 0 && strings.HasPrefix(s.lastLine, "GPU ") {
			s.cards, s.migCards = s.cards[:n-1], append(s.migCards, s.cards[n-1])
		}
	}
	if strings.TrimSpace(text) != "" {
		s.lastLine = text
	}
	s.tellingLine = moreTelling(s.tellingLine, text)
}

// quote makes a line printable and short.
func quote(line string) string { return quoteUpTo(line, 200) }

// quoteUpTo is quote with a limit in bytes.
func quoteUpTo(line string, most int) string {
	if len(line) > most {
		return strconv.Quote(line[:most]) + "…"
	}
	return strconv.Quote(line)
}

// QuotedLastLine quotes the last line of a non-empty output.
func QuotedLastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return quote(strings.TrimSpace(lines[len(lines)-1]))
}
