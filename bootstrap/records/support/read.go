package support

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// Limits of what one host may send: a bundle of many hosts must fit on the disk of who asks for it.
const (
	MaxStream  = 11 << 20 // as scripts/support.sh prints it: base64 of about 8 MiB
	maxEntries = 100
)

// Entry is one thing that a host told.
type Entry struct {
	Name    string // of letters, digits and hyphens: it becomes the name of a file
	Content []byte
}

// entryName is what a host may call an entry: with it, nothing can leave the host's folder. Own names are those of files
// that kgpu itself puts there.
var (
	entryName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,79}$`)
	ownNames  = []string{"facts", "error"}
)

// errCut says that not all of it is there.
var errCut = errors.New("the output ends before its end")

// Read reads what scripts/support.sh printed: a line NAME BASE64 for each entry. It believes nothing: lines that are
// none are left out, and of two entries with one name the second one. An error tells why there may be more; what could be
// read is returned all the same.
func Read(output []byte) ([]Entry, error) {
	var entries []Entry
	seen := map[string]bool{}
	ended, strange := false, 0
	for line := range bytes.Lines(output) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if string(text) == "kgpu-support=1" || len(text) == 0 {
			continue
		}
		if ended = whole && string(text) == "end=1"; ended {
			break
		}
		e, ok := entry(text)
		if !ok || seen[e.Name] || len(entries) == maxEntries {
			strange++
			continue
		}
		seen[e.Name] = true
		entries = append(entries, e)
	}
	switch {
	case !ended:
		return entries, errCut
	case strange > 0:
		return entries, fmt.Errorf("%s not as kgpu's script prints them", plural.Of(strange, "line"))
	}
	return entries, nil
}

func entry(line []byte) (Entry, bool) {
	name, text, ok := bytes.Cut(line, []byte(" "))
	if !ok || !entryName.Match(name) || slices.Contains(ownNames, string(name)) {
		return Entry{}, false
	}
	content, err := base64.StdEncoding.DecodeString(string(text))
	return Entry{string(name), content}, err == nil
}

// Capture keeps what is written to it up to MaxStream, and calls Full once there is more.
type Capture struct {
	Full func() // ends what writes; may be nil
	buf  bytes.Buffer
	full bool
}

// errFull ends the copying of a command's output.
var errFull = errors.New("the host sends more than a bundle takes")

// Write keeps p as far as there is room.
func (c *Capture) Write(p []byte) (int, error) {
	room := MaxStream - c.buf.Len()
	if len(p) <= room {
		return c.buf.Write(p)
	}
	c.buf.Write(p[:room])
	if !c.full && c.Full != nil {
		c.Full()
	}
	c.full = true
	return room, errFull
}

// Bytes is what was kept.
func (c *Capture) Bytes() []byte { return c.buf.Bytes() }

// Err is not nil when something was not kept.
func (c *Capture) Err() error {
	if c.full {
		return errFull
	}
	return nil
}
