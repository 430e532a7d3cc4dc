package command

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/report"
)

// agree asks before pods that run are moved away from their nodes.
func (t *terminal) agree(c *cli.Context, nodes []bootstrap.Disturbance) error {
	if c.Bool("yes") {
		return nil
	}
	var what strings.Builder
	for _, d := range nodes {
		fmt.Fprintf(&what, "%s has to be drained: %s. Its pods move to other nodes, or wait: %s", d.Node, d.Reason, strings.Join(d.Pods, ", "))
		if len(d.WithCards) > 0 {
			fmt.Fprintf(&what, "; cards are held by %s", strings.Join(d.WithCards, ", "))
		}
		what.WriteString(".\n")
	}
	return confirm(c, strings.TrimSuffix(what.String(), "\n"), "yes")
}

// confirm asks for a word, and changes nothing without it. Who reads JSON is not asked.
func confirm(c *cli.Context, what, word string) error {
	if c.String("output") == "json" {
		return usagef("%s\nnot confirmed, nothing was changed (--yes agrees)", what)
	}
	fmt.Fprintf(printable.Writer(c.App.Writer), "%s\nType %s to go on: ", what, word)
	var answer string
	if _, err := fmt.Fscanln(c.App.Reader, &answer); err != nil || answer != word {
		return usagef("not confirmed, nothing was changed (kgpu %s --yes does not ask)", c.Command.Name)
	}
	return nil
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
