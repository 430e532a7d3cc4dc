package report

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

const columnGap = 2

// grid is a table whose first row has the titles.
type grid struct {
	rows   [][]string
	leave  []int                // in a narrow terminal the columns with the smallest number leave first; zero: never; nil: none does
	colour func(row int) string // of a row; nil: only the titles have one
}

// grid prints a table as wide as the terminal: columns leave, cells break between words, and what is still too wide becomes a
// list for each row.
func (p *Page) grid(g grid) {
	for _, row := range g.rows {
		for i, cell := range row { // what is measured is what is printed
			row[i] = printable.Line(strings.ReplaceAll(cell, "\n", " "))
		}
	}
	narrow(g.rows, g.leave, p.look.Width)
	widths, fits := fitting(g.rows, p.look.Width)
	if !fits {
		p.list(g)
		return
	}
	for i, row := range g.rows {
		for _, line := range aligned(row, widths) {
			p.say(g.of(i), line, "")
		}
	}
}

// columns prints rows that have no titles, a bit to the right.
func (p *Page) columns(rows [][]string) {
	const in = "  "
	widths, fits := fitting(rows, max(p.look.Width-len(in), 0))
	for _, row := range rows {
		lines := []string{strings.Join(row, in)}
		if fits {
			lines = aligned(row, widths)
		}
		for _, line := range lines {
			p.say(plain, "", in+line)
		}
	}
}

func (g grid) of(row int) string {
	switch {
	case row == 0:
		return bold
	case g.colour == nil:
		return plain
	}
	return g.colour(row)
}

// list prints each row as lines of titles and cells.
func (p *Page) list(g grid) {
	titles := 0
	for _, title := range g.rows[0] {
		titles = max(titles, ansi.StringWidthWc(title))
	}
	for i, row := range g.rows[1:] {
		for c, cell := range row {
			label := padded(g.rows[0][c], titles+columnGap)
			for n, line := range words(cell, p.room(len(label)), p.room(len(label))) {
				if n > 0 {
					label = strings.Repeat(" ", len(label))
				}
				p.say(g.of(i+1), label+line, "")
			}
		}
		if i < len(g.rows)-2 {
			p.say(plain, "", "")
		}
	}
}

// narrow takes columns out of a table until it fits in width columns of a terminal, or none may leave. A width of zero has
// room for all.
func narrow(rows [][]string, leave []int, width int) {
	leave = slices.Clone(leave)
	for width > 0 && tableWidth(rows) > width {
		first := -1
		for i, n := range leave {
			if n > 0 && (first < 0 || n < leave[first]) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		leave = slices.Delete(leave, first, first+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], first, first+1)
		}
	}
}

// tableWidth is how wide the table of these rows becomes.
func tableWidth(rows [][]string) int { return total(natural(rows, ansi.StringWidthWc)) }

// natural is the width of each column by what measures its cells.
func natural(rows [][]string, measure func(string) int) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], measure(cell))
		}
	}
	return widths
}

func total(widths []int) int {
	all := -columnGap
	for _, w := range widths {
		all += w + columnGap
	}
	return all
}

// fitting are the widths of the columns with which a table fits, the widest made narrower first, and none than its longest
// word. Of two columns the second may stick out: it is a path.
func fitting(rows [][]string, width int) (widths []int, fits bool) {
	widths = natural(rows, ansi.StringWidthWc)
	if width == 0 {
		return widths, true
	}
	least := natural(rows, longestWord)
	if len(least) == 2 {
		least[1] = min(least[1], max(width-least[0]-columnGap, 1))
	}
	if total(least) > width {
		return nil, false
	}
	for total(widths) > width {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		widths[widest]--
	}
	return widths, true
}

func longestWord(cell string) int {
	most := 0
	for word := range strings.FieldsSeq(cell) {
		most = max(most, ansi.StringWidthWc(word))
	}
	return most
}

// aligned are the lines of a row.
func aligned(row []string, widths []int) []string {
	var lines []string
	at := 0
	for i, cell := range row {
		for n, part := range words(cell, widths[i], widths[i]) {
			if n == len(lines) {
				lines = append(lines, "")
			}
			lines[n] = padded(lines[n], at) + part
		}
		at += widths[i] + columnGap
	}
	return lines
}

// padded is text with spaces behind it up to a width.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-ansi.StringWidthWc(text), 0))
}
