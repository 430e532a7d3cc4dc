package run

import "strings"

// tailLines is how much of a failed step's output its error keeps.
const tailLines = 15

// tail is the end of a step's output.
type tail []string

func (t *tail) add(line string) {
	*t = append(*t, line)
	if len(*t) > tailLines {
		*t = (*t)[1:]
	}
}

func (t tail) String() string { return strings.Join(t, "\n") }

// last is the last line that is not empty.
func (t tail) last() string {
	for i := len(t) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(t[i]); line != "" {
			return line
		}
	}
	return ""
}
