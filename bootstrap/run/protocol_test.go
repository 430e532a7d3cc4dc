package run

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// notes is a listener that writes down what it hears.
type notes []string

func (n *notes) begun(step string, at int64) { *n = append(*n, fmt.Sprintf("begun %s %d", step, at)) }
func (n *notes) logged(step, text string)    { *n = append(*n, "log "+step+" "+text) }
func (n *notes) waiting(step, what string)   { *n = append(*n, "wait "+step+" "+what) }
func (n *notes) warned(step, text string)    { *n = append(*n, "warning "+step+" "+text) }
func (n *notes) output(step, name string, content []byte) {
	*n = append(*n, fmt.Sprintf("output %s %s %q", step, name, content))
}
func (n *notes) done(step string, d done) { *n = append(*n, fmt.Sprintf("done %s %+v", step, d)) }

const dialogue = "B\tos/x\t1700000000000\n" +
	"L\tos/x\ta\ttab\n" +
	"L\tos/x\t\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 \xff\n" +
	"W\tos/x\tthe lock\n" +
	"!\tos/x\tswap \x1b[31mis\x1b[0m on\n" +
	"torn\n\nD\tos/x\t0\n" +
	"O\tos/x\ttoken\tYWJj\n" +
	"D\tos/x\t0\t12\t\t\n" +
	"D\tos/y\t1\t3\tHOST_BUSY\tsomebody\n" +
	"E\t1\n"

var heard = []string{
	"begun os/x 1700000000000", "log os/x a\ttab", "log os/x red bell �", "wait os/x the lock", "warning os/x swap is on", `output os/x token "abc"`,
	"done os/x {exit:0 millis:12 reason: detail:}", "done os/y {exit:1 millis:3 reason:HOST_BUSY detail:somebody}",
}

func TestReaderHearsTheSameHoweverTheStreamIsCut(t *testing.T) {
	for piece := 1; piece <= len(dialogue); piece++ {
		var n notes
		r := reader{listener: &n}
		c := r.connect()
		for rest := []byte(dialogue); len(rest) > 0; {
			k := min(piece, len(rest))
			if _, err := c.Write(rest[:k]); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		if !slices.Equal(n, heard) {
			t.Fatalf("in pieces of %d: %q", piece, n)
		}
		if offset, end := r.position(); offset != int64(len(dialogue)) || end != ended {
			t.Fatalf("in pieces of %d: offset %d, %q", piece, offset, end)
		}
	}
}

func TestReaderGoesOnOverAnotherConnection(t *testing.T) {
	for cut := range len(dialogue) {
		var n notes
		r := reader{listener: &n}
		first := r.connect()
		_, _ = first.Write([]byte(dialogue[:cut]))
		second := r.connect()
		_, _ = first.Write([]byte(dialogue[cut:])) // too late
		offset, _ := r.position()
		_, _ = second.Write([]byte(dialogue[offset:]))
		if !slices.Equal(n, heard) {
			t.Fatalf("cut at %d: %q", cut, n)
		}
	}
}

func TestReaderEndings(t *testing.T) {
	for text, want := range map[string]ending{"": notYet, "E\t0\n": ended, "\nX\n": gone, "N\n": never, "L\ta\tX\n": notYet} {
		r := reader{listener: new(notes)}
		_, _ = r.connect().Write([]byte(text))
		if _, got := r.position(); got != want {
			t.Errorf("%q ends %q, not %q", text, got, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(dialogue))
	f.Add([]byte("L\ta\t\x1b[\x1b]\nO\ta\tb\tnot base64\nD\ta\tx\ty\tz\t\n\nX\n"))
	f.Add([]byte("L\ta\t" + strings.Repeat("x", 2*maxText) + "\nO\t" + strings.Repeat("y", 2*maxText)))
	f.Add([]byte("D\ta\t1\t-9\t\x1b[2JR\t\u009b\xff\nD\ta\t99999999999999999999\t1\t\t\nB\nW\ta\t\u202e\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var n notes
		r := reader{listener: &n}
		_, _ = r.connect().Write(stream)
		offset, _ := r.position()
		if complete := bytes.LastIndexByte(stream, '\n') + 1; offset > int64(complete) {
			t.Errorf("offset %d is beyond the last complete line at %d", offset, complete)
		}
		for _, note := range n {
			if !strings.HasPrefix(note, "output ") && len(note) > 2*maxText {
				t.Errorf("%d bytes of one line", len(note))
			}
			if !strings.HasPrefix(note, "output ") && strings.ContainsAny(note, "\x1b\x07\r\n\x00\u009b\u202e") {
				t.Errorf("not printable: %q", note)
			}
		}
	})
}
