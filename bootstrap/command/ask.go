package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// agree asks before pods that run are moved away from their nodes. --yes agrees to all drains; without it, nobody is asked
// about nodes that have nothing to lose.
func (t *terminal) agree(c *cli.Context, nodes []session.Disruption) (bool, error) {
	if !c.Bool("yes") && !session.Disrupting(nodes) {
		return false, nil
	}
	err := t.confirm(c, disrupted(nodes), "yes")
	return err == nil, err
}

// otherPods is how many of the pods without cards are named.
const otherPods = 8

// disrupted says which nodes are drained, why, and what that ends.
func disrupted(nodes []session.Disruption) string {
	var lines, idle []string
	say := func(text string) { lines = append(lines, text) }
	for _, d := range nodes {
		if d.Unknown {
			say(fmt.Sprintf("Node %s is drained (%s). What runs there is not known: the API server does not answer.", d.Node, d.Reason))
			continue
		}
		if len(d.Pods) == 0 {
			idle = append(idle, d.Node)
			continue
		}
		say(fmt.Sprintf("Node %s is drained (%s). This ends", d.Node, d.Reason))
		if len(d.WithCards) > 0 {
			say("  with cards: " + strings.Join(d.WithCards, ", "))
		}
		others := slices.DeleteFunc(slices.Clone(d.Pods), func(pod string) bool { return slices.Contains(d.WithCards, pod) })
		if len(others) > 0 {
			more := ""
			if n := len(others) - otherPods; n > 0 {
				others, more = others[:otherPods], fmt.Sprintf(" and %d more", n)
			}
			say("  without: " + strings.Join(others, ", ") + more)
		}
	}
	if len(idle) > 0 {
		say("Drained as well, with whatever comes there before: " + strings.Join(idle, ", "))
	}
	say("Pods with a controller begin anew on other nodes, or wait for room there. One without does not come back.")
	return strings.Join(lines, "\n")
}

// confirm asks for a word, unless --yes agrees to all. Without it nothing more is changed. A program cannot be asked.
func (t *terminal) confirm(c *cli.Context, what, word string) error {
	if c.Bool("yes") {
		return nil
	}
	var err error
	so := "nothing was changed"
	if t.worked.Load() {
		so = "what was done stays as it is"
	}
	if t.kind == report.JSON {
		err = usagef("%s\nnot confirmed, %s (--yes agrees)", what, so)
	} else {
		fmt.Fprintf(report.On(c.App.Writer), "%s\nType %s to go on: ", what, word)
		if answer, broken := answer(c.App.Reader); broken != nil || answer != word {
			err = usagef("not confirmed, %s: the word is %s (kgpu %s --yes does not ask)", so, word, commandName(c))
		}
	}
	if err != nil {
		t.ended = so
	}
	return err
}

// answer reads what a person types: the whole line, or the next question would get its rest, or the shell.
func answer(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := r.Read(b)
		line = append(line, b[:n]...)
		switch {
		case bytes.HasSuffix(line, []byte{'\n'}), errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimSpace(string(line)), nil
		case err != nil:
			return "", err
		}
	}
}

// answers is what a person types. A question is over with its line, and with the story.
type answers struct {
	io.Reader
	over <-chan struct{}
	view *report.View // that gives way meanwhile; nil: there is none
}

// Read waits for what is typed, until the story is interrupted: whoever asks goes on then, without an answer.
func (a *answers) Read(p []byte) (int, error) {
	if a.view != nil {
		a.view.Ask()
	}
	type typed struct {
		text []byte
		err  error
	}
	came := make(chan typed, 1)
	go func() {
		text := make([]byte, len(p)) // its own: nobody may look at p any more
		n, err := a.Reader.Read(text)
		came <- typed{text[:n], err}
	}()
	select {
	case t := <-came:
		if a.view != nil && (t.err != nil || bytes.ContainsRune(t.text, '\n')) {
			a.view.Answered()
		}
		return copy(p, t.text), t.err
	case <-a.over:
		if a.view != nil {
			a.view.Answered()
		}
		return 0, io.EOF
	}
}

// trust is who says whether a host that nobody here knows is the right one: the person at the terminal; nil: nobody.
func trust(c *cli.Context) func(*remote.UnknownKeyError) bool {
	in, wrapped := c.App.Reader.(*answers)
	if !wrapped {
		in = &answers{Reader: c.App.Reader, over: c.Context.Done()}
	}
	out := c.App.ErrWriter // standard output may be for a program
	if in.view != nil {
		out = c.App.Writer
	} else if !report.IsTerminal(out) {
		return nil
	}
	if !report.IsTerminal(in.Reader) || c.String("scan") == "-" || c.Bool("accept-new") {
		return nil
	}
	return func(key *remote.UnknownKeyError) bool { return askTrust(out, in, key) }
}

// askTrust asks as ssh does, and takes what ssh takes: yes, no, or the fingerprint.
func askTrust(w io.Writer, r io.Reader, key *remote.UnknownKeyError) bool {
	w = report.On(w)
	fmt.Fprintf(w, "The authenticity of host '%s' can't be established.\n", key.Address)
	fmt.Fprintf(w, "%s key fingerprint is %s.\n", key.Type(), key.SHA256())
	fmt.Fprintf(w, "The host itself shows it by: ssh-keygen -lf %s\n", key.File())
	fmt.Fprintf(w, "With yes, the key is added to %s.\n", key.KnownHosts)
	for question := "Are you sure you want to continue connecting (yes/no/[fingerprint])? "; ; question = "Please type 'yes', 'no' or the fingerprint: " {
		fmt.Fprint(w, question)
		typed, err := answer(r)
		switch answer := strings.ToLower(typed); {
		case err != nil:
			fmt.Fprintln(w) // where a person's own would be
			return false
		case answer == "yes", answer == "y", typed == key.SHA256():
			return true
		case answer == "no", answer == "n":
			return false
		}
	}
}
