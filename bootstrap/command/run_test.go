package command

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/access"
)

// A program that kgpu ran for the user has said why it failed: kgpu ends as it did, and says nothing more.
func TestExitStatusOfAnotherProgram(t *testing.T) {
	var said bytes.Buffer
	app := App("test", Group("", &cli.Command{Name: "run", Action: func(*cli.Context) error {
		return fmt.Errorf("running it: %w", &access.ExitError{Status: 42})
	}}))
	app.ErrWriter = &said
	if got := Run(t.Context(), app, []string{"kgpu", "run"}); got != 42 || said.Len() > 0 {
		t.Errorf("ended with %d, said %q", got, said.String())
	}
}
