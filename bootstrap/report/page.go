package report

import (
	"bytes"
	"io"
	"math"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Look is what the terminal that is printed on can do; the zero value is that of a file.
type Look struct {
	Colour bool
	Width  int // in columns; zero: there is room
}

// LookOf is the look of what w leads to.
func LookOf(w io.Writer) Look {
	switch x := w.(type) {
	case interface{ Look() Look }:
		return x.Look()
	case *os.File:
		if IsTerminal(x) {
			width, _ := sizeOf(x)()
			return Look{Colour: colourWanted(), Width: width}
		}
	}
	return Look{}
}

// IsTerminal reports whether a person is at the other end of a stream.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colourWanted reports whether a terminal may get colours: https://no-color.org, and terminals that know none.
func colourWanted() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// painted is a text in a colour, where there are any.
func (l Look) painted(colour, text string) string {
	if !l.Colour || colour == plain || text == "" {
		return text
	}
	return colour + text + reset
}

// Page is what people read, on a terminal or not. What is written to it, whole lines at a time, becomes printable, and breaks
// between words where a terminal is too narrow; in a file lines stay whole, so that they can be searched.
type Page struct {
	to   *writer
	look Look
}

// On returns a page on w.
func On(w io.Writer) *Page {
	if p, ok := w.(*Page); ok {
		return p
	}
	return &Page{&writer{w: w}, LookOf(w)}
}

// Look is that of what the page is on.
func (p *Page) Look() Look { return p.look }

// Write prints text as it is.
func (p *Page) Write(b []byte) (int, error) {
	p.print(plain, "", string(b))
	return len(b), p.to.err
}

// say prints a line that begins with a label in a colour; without more text the label is the line.
func (p *Page) say(colour, label, text string) { p.print(colour, label, text+"\n") }

// print prints a label in a colour and text behind it.
func (p *Page) print(colour, label, text string) {
	label, text = printable.Text(label), wrapped(printable.Text(label+text), p.look.Width)
	if strings.HasPrefix(text, label) {
		text = text[len(label):]
	} else { // it is broken itself
		label, text = strings.TrimSuffix(text, "\n"), "\n"
	}
	_, _ = io.WriteString(p.to, p.look.painted(colour, label)+text) // it keeps the error
}

// Sheet is a page that is kept: as a terminal of that look would show it.
type Sheet struct {
	bytes.Buffer
	As Look
}

// Look is that of the terminal.
func (s *Sheet) Look() Look { return s.As }

// room is how wide a text may be in front of which so many columns are taken.
func (p *Page) room(taken int) int {
	if p.look.Width == 0 {
		return math.MaxInt
	}
	return p.look.Width - taken
}

// wrapped breaks the lines of a text between words where they are wider than a terminal of that width; zero: it does not
// matter. Names and paths stay whole, or they could not be copied: what is wider has a line of its own. The further lines of
// one that is indented, or begins with a label, stand further to the right.
func wrapped(text string, width int) string {
	if width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lead := len(line) - len(strings.TrimLeft(line, " "))
		if first, _, _ := strings.Cut(line, " "); lead > 0 || strings.HasSuffix(first, ":") || first == "→" {
			lead += 2
		}
		lines[i] = hung(line, width, lead)
	}
	return strings.Join(lines, "\n")
}

// hung is a line whose further lines begin in a column.
func hung(line string, width, column int) string {
	if width == 0 || ansi.StringWidthWc(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	lead := line[:len(line)-len(text)]
	return lead + strings.Join(words(text, width-len(lead), width-column), "\n"+strings.Repeat(" ", column))
}

// Hang breaks text, which begins in a column, into lines of that width; the others begin in the same column.
func Hang(text string, column, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Join(words(text, width-column, width-column), "\n"+strings.Repeat(" ", column))
}

// words breaks a text into lines of at most so many columns, the first of which has another width.
func words(text string, first, width int) []string {
	var lines []string
	line, room := "", first
	for i, word := range strings.Split(text, " ") {
		switch longer := line + " " + word; {
		case i == 0:
			line = word
		case line == "" || ansi.StringWidthWc(strings.TrimRight(longer, " ")) <= room:
			line = strings.TrimLeft(longer, " ")
		default:
			lines = append(lines, strings.TrimRight(line, " "))
			line, room = word, width
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}
