package live

import (
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Screen is the end of what a terminal shows: lines that stay, and below them those of the last frame, which the next one
// replaces. The cursor rests below the frame, at the begin of a line, and is never hidden, and the terminal is in no other
// mode than before: whatever way the program ends, there is nothing to put back. It is not safe for concurrent use.
type Screen struct {
	w     io.Writer
	frame []string // that is shown
	width int      // of the terminal, when it was drawn
}

// NewScreen draws on w, a terminal.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Draw writes text above the frame, to stay, and replaces the frame, all at once. The text is empty or ends with a newline,
// unless there is no frame.
func (s *Screen) Draw(text string, frame []string, width int) error {
	if text == "" && width == s.width && slices.Equal(frame, s.frame) {
		return nil
	}
	var b strings.Builder
	b.WriteString(ansi.SetModeSynchronizedOutput)
	if rows := s.rows(width); rows > 0 {
		b.WriteString("\r" + ansi.CursorUp(rows))
	}
	if text != "" {
		b.WriteString(ansi.EraseScreenBelow + text) // its lines may be broken, and take more of the former frame's
	}
	for _, line := range frame {
		b.WriteString(ansi.EraseEntireLine + line + "\n")
	}
	b.WriteString(ansi.EraseScreenBelow + ansi.ResetModeSynchronizedOutput)
	s.frame, s.width = frame, width
	_, err := io.WriteString(s.w, b.String())
	return err
}

// rows is how many lines of the terminal the frame takes. Where it has got narrower since, terminals break the lines.
func (s *Screen) rows(width int) int {
	rows := 0
	for _, line := range s.frame {
		rows++
		if width > 0 {
			rows += max(ansi.StringWidthWc(line)-1, 0) / width
		}
	}
	return rows
}

// Leave makes the frame that is shown one of the lines that stay.
func (s *Screen) Leave() { s.frame = nil }
