package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/report"
)

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
