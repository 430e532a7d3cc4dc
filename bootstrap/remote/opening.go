package remote

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// openingMost is how much a login shell may say before it runs the command that it was given.
const openingMost = 1 << 20

// opening is the beginning of one of a command's streams: what is said there before the command runs is not the command's, but that
// of the login shell's start-up files, or of what the host runs in the command's place. The command's own begins after a mark.
type opening struct {
	mark []byte
	to   io.Writer    // gets what comes after the mark
	full func([]byte) // gets what comes before it, to which there is no end

	mu   sync.Mutex
	said []byte // before the mark
	over bool   // the mark has come
}

// openings are those of stdout and stderr, and the word that the mark is made of, which no start-up file can know.
func openings(stdout, stderr io.Writer, full func([]byte)) (out, err *opening, word string) {
	word = rand.Text()
	mark := []byte("kgpu-" + word + "\n")
	return &opening{mark: mark, to: stdout, full: full}, &opening{mark: mark, to: stderr, full: full}, word
}

// shellLine runs shell text with sh, whatever shell the user has, which reads one line without line breaks in quotes: csh takes none
// there. The line has the mark in parts, so that a shell that repeats what it runs does not say it. Files that bash would read
// before it runs a script (BASH_ENV) speak after the mark: none is read.
func shellLine(text, word string) string {
	return `exec sh -c 'printf "kgpu-%s\n" "$0"; printf "kgpu-%s\n" "$0" >&2; unset BASH_ENV; exec sh -c "$1"' ` + word + " " + Quote(text)
}

func (o *opening) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return o.to.Write(p)
	}
	from := max(0, len(o.said)-len(o.mark))
	o.said = append(o.said, p...)
	if before, after, ok := bytes.Cut(o.said[from:], o.mark); ok {
		o.said, o.over = o.said[:from+len(before)], true
		if len(after) > 0 {
			if _, err := o.to.Write(after); err != nil {
				return 0, err
			}
		}
		return len(p), nil
	}
	if len(o.said) > openingMost {
		o.full(o.said)
		o.said = o.said[:0]
	}
	return len(p), nil
}

func (o *opening) isOver() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

func (o *opening) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.said)
}

// NotRunError is a host that lets the user in and does not run what it is told: it runs something else in its place.
type NotRunError struct {
	User string // that the host says to log in as; empty: it names none
	said string // the lines it said, fit to be printed
}

func (e *NotRunError) Error() string {
	if e.said == "" {
		return "the host did not run kgpu's command, and said nothing"
	}
	return "the host did not run kgpu's command, and said: " + e.said
}

var (
	loginAs  = regexp.MustCompile(`(?i)\blog ?in (?:as|with) (?:the )?(?:user(?:name)? )?["'“‘]?([a-z_][a-z0-9_-]{0,31})\b`)
	noUser   = []string{"a", "an", "the", "user", "another", "different", "your", "root", "non-root", "normal", "regular"}
	expired  = regexp.MustCompile(`(?i)password (?:has )?expired|password change required|(?:must|required to) change your password`)
	manyOnes = 6 // lines that are repeated: the first and the last half of them
)

// notRun is the error of a command that never began: a forced command, a shell such as nologin, or one that is no shell.
func (e *execution) notRun(status *int) *reason.Error {
	cause := &NotRunError{said: spoken(e.openOut.text() + "\n" + e.openErr.text())}
	out := &reason.Error{ID: reason.SSHCommandRefused, Host: e.host.id, Doing: e.doing, Exit: status, Err: cause}
	t := e.host.target
	if m := loginAs.FindStringSubmatch(cause.said); m != nil && m[1] != t.user && !slices.Contains(noUser, strings.ToLower(m[1])) {
		cause.User = m[1]
		out.Advice = fmt.Sprintf("the host itself says which user to log in as: write `ssh: {user: %s}` into the inventory", cause.User)
	} else if expired.MatchString(cause.said) {
		out.Advice = fmt.Sprintf("log in once with `ssh -p %d %s@%s`, which asks for a new password, then run the same command again", t.port, t.user, t.host)
	}
	return out
}

// spoken is the lines that are not empty, as one line of printable text.
func spoken(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(printable.Short(line, saidMost)); line != "" {
			lines = append(lines, line)
		}
	}
	if half := manyOnes / 2; len(lines) > manyOnes {
		lines = slices.Concat(lines[:half], []string{"…"}, lines[len(lines)-half:])
	}
	return strings.Join(lines, " | ")
}
