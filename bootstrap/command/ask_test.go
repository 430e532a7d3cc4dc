package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestConfirm: nothing but the word goes on, and no question gets among the events of a program.
func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		args, typed string
		asked, ok   bool
	}{
		{"", "lab\n", true, true}, {"", "LAB\n", true, false}, {"", "yes\n", true, false}, {"", "", true, false}, {"-o json", "lab\n", false, false},
	} {
		var said bytes.Buffer
		app := App("test", Group("", Reset()))
		app.Reader, app.Writer = strings.NewReader(c.typed), &said
		var err error
		app.Commands[0].Action = func(ctx *cli.Context) error {
			err = confirm(ctx, "This takes it apart.", "lab")
			return nil
		}
		if wrong := app.Run(strings.Fields("kgpu reset " + c.args)); wrong != nil {
			t.Fatal(wrong)
		}
		if asked := strings.Contains(said.String(), "Type lab to go on: "); asked != c.asked || (err == nil) != c.ok {
			t.Errorf("%+v: %v, said %q", c, err, said.String())
		}
		if err != nil && exitStatus(err) != 3 {
			t.Errorf("%+v ends with %d", c, exitStatus(err))
		}
	}
}
