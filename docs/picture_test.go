package docs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPictures holds the README's pictures of a terminal against the recording, which `make recording` makes of real runs: a moment of
// `kgpu up` half way, and its end.
func TestPictures(t *testing.T) {
	lines := pictureOfUp(t)
	for name, colours := range map[string]map[string]string{
		"up-light.svg": {"back": "#ffffff", "edge": "#d0d7de", "plain": "#1f2328", "2": "#656d76", "31": "#cf222e", "32": "#116329", "33": "#7d4e00", "36": "#1b7c83"},
		"up-dark.svg":  {"back": "#0d1117", "edge": "#30363d", "plain": "#e6edf3", "2": "#8d96a0", "31": "#ff7b72", "32": "#3fb950", "33": "#d29922", "36": "#39c5cf"},
	} {
		path, got := filepath.Join("images", name), svg(lines, colours)
		if *update {
			must(t, os.WriteFile(path, got, 0o644))
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as recording.cast has it: `make docs` writes it (%v)", path, err)
		}
	}
}

// glyph is a character on a terminal, and how it looks: the numbers of its sequence, such as "1" and "32".
type glyph struct{ text, look string }

var (
	sequence = regexp.MustCompile(`^\x1b\[([?0-9;]*)([A-Za-z])`)
	bar      = regexp.MustCompile(`^kgpu up .* (\d+) of (\d+) steps`)
	verified = regexp.MustCompile(`GPU-[0-9a-f]{8}-`)
)

// pictureOfUp is what the terminal showed when half of the steps were done, and at the end.
func pictureOfUp(t *testing.T) [][]glyph {
	t.Helper()
	file, err := os.Open("recording.cast")
	must(t, err)
	defer file.Close()
	s := &screen{}
	var half, end [][]glyph
	typed, begun := "", false
	for in := bufio.NewScanner(file); in.Scan(); {
		var event []any
		if json.Unmarshal(in.Bytes(), &event) != nil || len(event) != 3 {
			continue // the header
		}
		said, _ := event[2].(string)
		switch s.write(said); {
		case strings.HasSuffix(said, "$\x1b[0m "): // cast.py's prompt
			typed, begun = "", false
		case !begun && said == "\r\n":
			begun = typed == "kgpu up"
		case !begun:
			typed += said
		}
		if !begun {
			continue
		}
		end = slices.Clone(s.rows)
		at := slices.IndexFunc(s.rows, func(row []glyph) bool {
			m := bar.FindStringSubmatch(plain(row))
			if m == nil {
				return false
			}
			done, _ := strconv.Atoi(m[1])
			all, _ := strconv.Atoi(m[2])
			return 2*done >= all
		})
		if half == nil && at >= 0 {
			half = slices.Clone(s.rows[at:s.y])
		}
	}
	at := slices.IndexFunc(end, func(row []glyph) bool { return bar.MatchString(plain(row)) })
	if half == nil || at < 0 {
		t.Fatal("recording.cast has no kgpu up, or not all of it")
	}
	note := func(text string) []glyph { return []glyph{{text, "2"}} }
	out := append([][]glyph{{{"$ ", "2"}, {"kgpu up", "1"}}}, half...)
	out = append(out, note("⋮"))
	for _, row := range end[:at] {
		if verified.MatchString(plain(row)) {
			out = append(out, row)
		}
	}
	out = append(out, end[at:]...)
	for plain(out[len(out)-1]) == "" {
		out = out[:len(out)-1]
	}
	return out
}

// screen is as much of a terminal as the recording needs: rows grow at the end, and the cursor goes up among them.
type screen struct {
	rows [][]glyph
	x, y int
	look string
}

func (s *screen) write(text string) {
	for text != "" {
		for len(s.rows) <= s.y {
			s.rows = append(s.rows, nil)
		}
		if m := sequence.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			switch m[2] {
			case "m":
				s.look = strings.TrimPrefix(m[1], "0")
			case "A":
				up, err := strconv.Atoi(m[1])
				if err != nil {
					up = 1
				}
				s.y = max(0, s.y-up)
			case "K":
				s.rows[s.y] = nil
			case "J":
				s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
				s.rows = s.rows[:s.y+1]
			}
			continue
		}
		c := []rune(text)[0]
		text = text[len(string(c)):]
		switch c {
		case '\r':
			s.x = 0
		case '\n':
			s.y++
		default:
			row := slices.Clone(s.rows[s.y]) // a picture may have the old one
			for len(row) <= s.x {
				row = append(row, glyph{" ", ""})
			}
			row[s.x], s.rows[s.y] = glyph{string(c), s.look}, row
			s.x++
		}
	}
}

func joined(row []glyph) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteString(c.text)
	}
	return b.String()
}

func plain(row []glyph) string { return strings.TrimRight(joined(row), " ") }

// svg draws lines of text in these colours.
func svg(lines [][]glyph, colours map[string]string) []byte {
	const wide, high, edge = 8.4, 20, 16
	columns := 0
	for _, line := range lines {
		columns = max(columns, len([]rune(plain(line))))
	}
	width, height := 2*edge+wide*float64(columns), 2*edge+high*len(lines)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, colours["back"], colours["edge"])
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="%s">`+"\n", colours["plain"])
	for y, line := range lines {
		for x := 0; x < len(line); {
			from, text := x, ""
			for ; x < len(line) && line[x].look == line[from].look; x++ {
				text += line[x].text
			}
			if strings.TrimSpace(text) == "" {
				continue
			}
			before := len([]rune(joined(line[:from])))
			look := ""
			for number := range strings.SplitSeq(line[from].look, ";") {
				if number == "1" {
					look += ` font-weight="bold"`
				} else if colour, ok := colours[number]; ok {
					look += fmt.Sprintf(` fill="%s"`, colour)
				}
			}
			// Whatever the font, columns stay columns, and whoever draws it leaves no-break spaces alone.
			text = strings.ReplaceAll(text, " ", "\u00a0")
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
				edge+wide*float64(before), edge+high*y+15, wide*float64(len([]rune(text))), look, html.EscapeString(text))
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}
