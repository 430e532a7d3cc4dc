package report

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// emulator is as much of a terminal as a view needs. It knows no other sequence: what a view leaves behind, such as a
// hidden cursor, would fail the test.
type emulator struct {
	t             *testing.T
	width, height int
	rows          [][]string // of cells; the second cell of a wide character is empty
	x, y          int
	scrolled      []string // rows that left the screen at its top
	wrapped       int      // lines that were longer than the terminal is wide
}

func newEmulator(t *testing.T, width, height int) *emulator {
	e := &emulator{t: t, width: width, height: height}
	for range height {
		e.rows = append(e.rows, e.blank())
	}
	return e
}

func (e *emulator) blank() []string {
	row := make([]string, e.width)
	for i := range row {
		row[i] = " "
	}
	return row
}

func (e *emulator) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexAny(text[2:], "ABCDEFGHJKLMPSTXZ@`abcdefghilmnpqrstux") + 2
			e.control(text[2:end], text[end])
			text = text[end+1:]
		case text[0] == '\r':
			e.x, text = 0, text[1:]
		case text[0] == '\n':
			e.down()
			e.x, text = 0, text[1:]
		default:
			_, n := utf8.DecodeRuneInString(text)
			e.put(text[:n])
			text = text[n:]
		}
	}
	return len(p), nil
}

func (e *emulator) put(c string) {
	if c < " " {
		e.t.Errorf("the terminal gets %q", c)
	}
	width := ansi.StringWidthWc(c)
	if e.x+width > e.width {
		e.wrapped++
		e.down()
		e.x = 0
	}
	e.rows[e.y][e.x] = c
	for i := 1; i < width; i++ {
		e.rows[e.y][e.x+i] = ""
	}
	e.x += width
}

func (e *emulator) down() {
	if e.y++; e.y < e.height {
		return
	}
	e.y--
	e.scrolled = append(e.scrolled, strings.TrimRight(strings.Join(e.rows[0], ""), " "))
	e.rows = append(e.rows[1:], e.blank())
}

func (e *emulator) control(parameters string, final byte) {
	switch {
	case final == 'm', parameters == "?2026":
	case final == 'A':
		n, err := strconv.Atoi(parameters)
		if err != nil {
			n = 1
		}
		e.y = max(e.y-n, 0)
	case final == 'K' && parameters == "2":
		e.rows[e.y] = e.blank()
	case final == 'J' && (parameters == "" || parameters == "0"):
		copy(e.rows[e.y][e.x:], e.blank())
		for y := e.y + 1; y < e.height; y++ {
			e.rows[y] = e.blank()
		}
	default:
		e.t.Errorf("the terminal gets ESC [ %s %c", parameters, final)
	}
}

// seen is what is on the screen.
func (e *emulator) seen() string {
	var lines []string
	for _, row := range e.rows {
		lines = append(lines, strings.TrimRight(strings.Join(row, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// all is that and what has scrolled away.
func (e *emulator) all() string { return strings.Join(append(e.scrolled, e.seen()), "\n") }

// resize gives the terminal another size, as many do: lines that are too long are broken, those that were broken are not
// made whole, and the cursor stays where it is in the text.
func (e *emulator) resize(width, height int) {
	old := *e
	*e = emulator{t: e.t, width: width, height: height, scrolled: e.scrolled, wrapped: e.wrapped}
	for range height {
		e.rows = append(e.rows, e.blank())
	}
	for _, row := range old.rows[:old.y] {
		for _, c := range strings.TrimRight(strings.Join(row, ""), " ") {
			e.put(string(c))
		}
		e.down()
		e.x = 0
	}
}
