package prepare

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// command runs a program and puts the end of what it said into the error.
type command struct {
	dir    string
	env    []string // added to ours
	stdout io.Writer
}

const saidAtMost = 2000 // bytes of output that an error repeats

func (c command) run(ctx context.Context, name string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if c.stdout != nil {
		cmd.Stdout = c.stdout
	}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text := said.String()
	if len(text) > saidAtMost {
		text = "…" + text[len(text)-saidAtMost:]
	}
	return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(text))
}

func (c command) output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	c.stdout = &out
	err := c.run(ctx, name, args...)
	return out.Bytes(), err
}
