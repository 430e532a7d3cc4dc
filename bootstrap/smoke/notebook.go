package smoke

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// ListDevices is the Python code that lists the devices from inside a notebook.
//
//go:embed devices.py
var ListDevices string

// Devices is what the code found.
type Devices struct {
	Source string   // what listed them: TensorFlow, PyTorch, or CUDA for the driver itself
	Names  []string // as it names them, with a GPU among them
	Cards  []string // UUIDs; none where the image has no nvidia-smi
	Tried  []string // what found no GPU before, and why
}

// How the code tells what it found.
const (
	notebookDevice = "kgpu-device "
	notebookTried  = "kgpu-tried "
	notebookCard   = "kgpu-card "
)

// gpuName fits the names of GPUs: /gpu:0 of the first TensorFlow, /device:GPU:0 and /physical_device:GPU:0 of later ones,
// cuda:0 of PyTorch and of the code's own for the driver.
var gpuName = regexp.MustCompile(`(?i)^(/|.*/)((physical_)?device:)?gpu:[0-9]+$|^cuda:[0-9]+( |$)`)

// cardName is a UUID of a card, or of a part of one.
var cardName = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Za-z/-]+$`)

// JudgeNotebook reads what the code printed. Without a GPU the error is a *reason.Error with what was tried.
func JudgeNotebook(output string) (*Devices, error) {
	d := &Devices{}
	whole, gpu := false, false
	last := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case whole || line == "":
		case line == endMark:
			whole = true
		case strings.HasPrefix(line, notebookDevice):
			source, name, _ := strings.Cut(line[len(notebookDevice):], " ")
			d.Source = shorten(source)
			d.Names = append(d.Names, shorten(name))
			gpu = gpu || gpuName.MatchString(name)
		case strings.HasPrefix(line, notebookTried):
			source, why, _ := strings.Cut(line[len(notebookTried):], " ")
			d.Tried = append(d.Tried, shorten(source)+": "+quote(why))
		case strings.HasPrefix(line, notebookCard):
			if uuid := line[len(notebookCard):]; cardName.MatchString(uuid) && !slices.Contains(d.Cards, uuid) {
				d.Cards = append(d.Cards, uuid)
			}
		default:
			last = line
		}
	}
	switch {
	case !whole:
		return nil, &reason.Error{ID: reason.NotebookFailed, Doing: "listing devices in the notebook", Detail: "the list has no end; the kernel's last words: " + quote(last)}
	case !gpu:
		found := "nothing was tried"
		if len(d.Tried) > 0 {
			found = strings.Join(d.Tried[:min(len(d.Tried), 8)], "; ")
		}
		return nil, &reason.Error{ID: reason.NotebookNoGPU, Doing: "listing devices in the notebook", Detail: "no GPU is in the list: " + found}
	}
	return d, nil
}
