package smoke

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

//go:embed devices.py
var devices string

//go:embed compute.py
var compute string

// ComputeOnDevices is the Python code that computes on the GPUs from inside a notebook. Python reads the ASCII quoting
// of Go.
var ComputeOnDevices = "code = " + strconv.QuoteToASCII(compute) + "\n" + devices

// Devices is the result of computing in the notebook.
type Devices struct {
	Source  string   // what computed: TensorFlow, PyTorch, or CUDA for the driver itself
	Version string   // of Source; of the driver, the newest CUDA that it supports
	GPUs    []Device // at least one
	UUIDs   []string // UUIDs of the GPUs; nil if the image has no nvidia-smi
	Tried   []string // what failed to compute before, and why
}

// Device is a GPU that Source lists.
type Device struct {
	Name string        // in Source's words, with the model if it knows it
	Took time.Duration // how long a matrix product took, or with CUDA writing and reading memory; zero if it was not tried
	Full string        // why it was not tried: other pods use its memory
}

// String tells what the notebook does on the GPUs.
func (d *Devices) String() string {
	done := "multiplies matrices"
	if d.Source == driverSource {
		done = "fills and reads memory"
	}
	var all []string
	for _, g := range d.GPUs {
		if g.Full != "" {
			all = append(all, "lists "+g.Name+", and others have its memory: not tried")
		} else {
			all = append(all, done+" on "+g.Name+" in "+milliseconds(g.Took))
		}
	}
	return strings.Join(all, ", ") + " (" + d.Source + " " + d.Version + ")"
}

// By is the short form of String for the table.
func (d *Devices) By() string {
	words := d.Source + " " + d.Version
	if len(d.GPUs) == 1 && d.GPUs[0].Full == "" {
		words += ", " + milliseconds(d.GPUs[0].Took)
	}
	return "the notebook (" + words + ")"
}

// Computed reports whether all GPUs computed.
func (d *Devices) Computed() bool {
	return !slices.ContainsFunc(d.GPUs, func(g Device) bool { return g.Full != "" })
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64) + " ms"
}

// driverSource is the Source that is not a framework.
const driverSource = "CUDA"

// These mark the lines that compute.py and devices.py print.
const (
	notebookVersion  = "kgpu-version"
	notebookDevice   = "kgpu-device"
	notebookComputed = "kgpu-computed"
	notebookFailed   = "kgpu-failed"
	notebookFull     = "kgpu-busy"
	notebookTried    = "kgpu-tried"
	notebookDied     = "kgpu-died"
	notebookCard     = "kgpu-card"
)

// gpuName matches the names of GPUs: /gpu:0 in TensorFlow 1, /device:GPU:0 and /physical_device:GPU:0 in later ones,
// cuda:0 in PyTorch and in compute.py. The model may follow.
var gpuName = regexp.MustCompile(`(?i)^((/|/(physical_)?device:)gpu|cuda):[0-9]+( |$)`)

// uuidPattern matches the UUID of a GPU or a MIG instance.
var uuidPattern = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Za-z/-]+$`)

// maxDevices limits the devices of a library: more than a host's GPUs and its CPU.
const maxDevices = 32

// maxWords is how many bytes of a framework's error are kept. TensorFlow's begin with what it launched and end with the
// driver's error.
const maxWords = 500

// library is what a framework, or the driver itself, printed.
type library struct {
	source, version string
	devices         []device
	words           []string // why it lists no GPU, or crashed
}

// device is a device of any kind.
type device struct {
	Device
	gpu    bool
	failed string // why it does not compute
}

// gpus returns the GPUs that computed, or did not for lack of memory.
func (l *library) gpus() []Device {
	var all []Device
	for _, d := range l.devices {
		if d.gpu {
			all = append(all, d.Device)
		}
	}
	return all
}

// against says why the library failed on one of its GPUs; empty if it computes on all of them.
func (l *library) against() string {
	for _, d := range l.devices {
		if !d.gpu || d.failed == "" && (d.Took > 0 || d.Full != "") {
			continue
		}
		why := d.failed
		if why == "" {
			why = cmp.Or(strings.Join(l.words, "; "), "it says nothing")
		}
		return fmt.Sprintf("%s %s lists %s and cannot compute on it: %s", l.source, l.version, d.Name, why)
	}
	return ""
}

// line reads a line of the library.
func (l *library) line(mark, text string) {
	if mark == notebookVersion {
		l.version = shorten(text)
		return
	}
	if mark == notebookDevice {
		if len(l.devices) < maxDevices {
			l.devices = append(l.devices, device{Device: Device{Name: shorten(text)}, gpu: gpuName.MatchString(text)})
		}
		return
	}
	if mark == notebookTried || mark == notebookDied {
		if len(l.words) < maxDevices {
			l.words = append(l.words, quoteUpTo(text, maxWords))
		}
		return
	}
	number, rest, _ := strings.Cut(text, " ")
	i, err := strconv.ParseUint(number, 10, 8)
	if err != nil || int(i) >= len(l.devices) {
		return
	}
	d := &l.devices[i]
	switch mark {
	case notebookComputed:
		if took, err := strconv.ParseUint(rest, 10, 32); err == nil {
			d.Took = max(time.Duration(took)*time.Microsecond, time.Microsecond)
		}
	case notebookFailed:
		d.failed = quoteUpTo(rest, maxWords)
	case notebookFull:
		d.Full = quoteUpTo(rest, maxWords)
	}
}

// CheckNotebook reads the output of ComputeOnDevices. It returns the first library that computes on all GPUs that it
// lists. If there is none, the error is a *reason.Error with what was tried.
func CheckNotebook(output string) (*Devices, error) {
	var all []*library
	var cards []string
	whole := false
	last := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		mark, text, _ := strings.Cut(line, " ")
		switch {
		case whole || line == "":
		case line == endMark:
			whole = true
		case mark == notebookCard:
			if uuidPattern.MatchString(text) && !slices.Contains(cards, text) && len(cards) < maxDevices {
				cards = append(cards, text)
			}
		case slices.Contains([]string{notebookVersion, notebookDevice, notebookComputed, notebookFailed, notebookFull, notebookTried, notebookDied}, mark):
			source, text, _ := strings.Cut(text, " ")
			source = shorten(source)
			i := slices.IndexFunc(all, func(l *library) bool { return l.source == source })
			if i < 0 && len(all) < maxDevices {
				i, all = len(all), append(all, &library{source: source})
			}
			if i >= 0 {
				all[i].line(mark, text)
			}
		default:
			last = line
		}
	}
	const doing = "computing in the notebook"
	if !whole {
		return nil, &reason.Error{ID: reason.NotebookFailed, Doing: doing, Detail: "its report has no end; the kernel's last words: " + quote(last)}
	}
	var tried, cannot []string
	for _, l := range all {
		gpus, against := l.gpus(), l.against()
		switch {
		case len(gpus) > 0 && against == "":
			return &Devices{Source: l.source, Version: l.version, GPUs: gpus, UUIDs: cards, Tried: append(cannot, tried...)}, nil
		case len(gpus) > 0:
			cannot = append(cannot, against)
		default:
			tried = append(tried, l.source+": "+strings.Join(l.words, "; "))
		}
	}
	if len(cannot) > 0 {
		detail := strings.Join(cannot, "; ")
		if len(cards) > 0 {
			detail += " (card " + list(cards) + ")"
		}
		return nil, &reason.Error{ID: reason.NotebookCannotCompute, Doing: doing, Detail: detail}
	}
	found := "nothing was tried"
	if len(tried) > 0 {
		found = strings.Join(tried[:min(len(tried), 8)], "; ")
	}
	return nil, &reason.Error{ID: reason.NotebookNoGPU, Doing: doing, Detail: "no GPU is in the list: " + found}
}
