package smoke

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// How a pod tells what nvidia-smi does not say itself.
const (
	statusMark = "kgpu-status "
	deviceMark = "kgpu-device "
	sampleMark = "kgpu-sample " // the exit status of the program that computes
	saidMark   = "kgpu-said "   // a line of its output
	endMark    = "kgpu-end"
)

// heldMark is what the step says instead of a Job that got no card: a pod that may have it.
const heldMark = "kgpu-held "

// timedOut is the status of timeout(1); 137 when the driver did not even hear SIGTERM, 125 to 127 when it could not run the program.
const timedOut, killed, notRun, notThere = 124, 137, 125, 127

// passed is what the sample says when its sums are right.
const passed = "Test PASSED"

// sight is what one Job saw.
type sight struct {
	cards     []string // UUIDs of those without instances
	cut       []string // of those with some
	instances []string
	devices   []string // /dev/nvidia0, …
	status    int      // of nvidia-smi; -1: it is not there
	whole     bool     // the log has its end
	last      string   // last line of nvidia-smi
	words     string   // its most telling one
	sample    int      // status of the program that computes; -1: it did not run
	passed    bool     // it says that its sums are right
	said      string   // its most telling line
	held      []string // pods outside of the proof that have the cards it could not get
}

// trouble are words of lines that tell what went wrong: "Failed to initialize NVML: Driver/library version mismatch".
var trouble = regexp.MustCompile(`(?i)fail|error|unable|couldn't`)

// telling is the more telling of a program's words and its next line. The one that tells what went wrong need not be the last: below
// it nvidia-smi has a version or advice, and the sample, whose output is a file, all that it said before.
func telling(words, line string) string {
	line = strings.TrimSpace(line)
	if line == "" || trouble.MatchString(words) && !trouble.MatchString(line) {
		return words
	}
	return line
}

// all are the cards and instances that it names.
func (s *sight) all() []string { return slices.Concat(s.cut, s.cards, s.instances) }

// "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-…)", as nvidia-smi -L prints it.
var cardLine = regexp.MustCompile(`^GPU [0-9]+: .* \(UUID: (GPU-[0-9A-Za-z-]+)\)$`)

// "  MIG 1g.5gb      Device  0: (UUID: MIG-…)", below the card that it is an instance of.
var instanceLine = regexp.MustCompile(`^ +MIG [0-9a-z.+]+ +Device +[0-9]+: \(UUID: (MIG-[0-9A-Za-z/-]+)\)$`)

// readLogs takes the lines "job<tab>line" of all Jobs apart. A pod may print what it wants: it cannot speak for another
// Job, and what it says after its end is not heard.
func readLogs(logs string) map[string]*sight {
	seen := map[string]*sight{}
	for line := range strings.Lines(logs) {
		job, text, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if !ok {
			continue
		}
		s := seen[job]
		if s == nil {
			s = &sight{status: -1, sample: -1}
			seen[job] = s
		}
		s.line(text)
	}
	return seen
}

func (s *sight) line(text string) {
	if s.whole {
		return
	}
	if status, ok := strings.CutPrefix(text, statusMark); ok {
		if n, err := strconv.Atoi(status); err == nil {
			s.status = n
		}
		return
	}
	if device, ok := strings.CutPrefix(text, deviceMark); ok {
		s.devices = append(s.devices, device)
		return
	}
	if status, ok := strings.CutPrefix(text, sampleMark); ok {
		if n, err := strconv.Atoi(status); err == nil {
			s.sample = n
		}
		return
	}
	if said, ok := strings.CutPrefix(text, saidMark); ok {
		s.passed = s.passed || said == passed
		s.said = telling(s.said, said)
		return
	}
	if pod, ok := strings.CutPrefix(text, heldMark); ok {
		s.held = append(s.held, pod)
		return
	}
	if text == endMark {
		s.whole = true
		return
	}
	if m := cardLine.FindStringSubmatch(text); m != nil && !slices.Contains(s.all(), m[1]) {
		s.cards = append(s.cards, m[1])
	}
	if m := instanceLine.FindStringSubmatch(text); m != nil && !slices.Contains(s.instances, m[1]) {
		s.instances = append(s.instances, m[1])
		if n := len(s.cards); n > 0 && strings.HasPrefix(s.last, "GPU ") {
			s.cards, s.cut = s.cards[:n-1], append(s.cut, s.cards[n-1])
		}
	}
	if strings.TrimSpace(text) != "" {
		s.last = text
	}
	s.words = telling(s.words, text)
}

// quote makes a line fit to be printed.
func quote(line string) string { return quoteUpTo(line, 200) }

// quoteUpTo is quote for a line of which so many bytes count.
func quoteUpTo(line string, most int) string {
	if len(line) > most {
		return strconv.Quote(line[:most]) + "…"
	}
	return strconv.Quote(line)
}

// LastWords quotes the last line of an output that is not empty.
func LastWords(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return quote(strings.TrimSpace(lines[len(lines)-1]))
}
