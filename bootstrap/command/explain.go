package command

import (
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Explain is kgpu explain.
func Explain() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say what a reason or an exit status means, and what to do", ArgsUsage: "[REASON]",
		Flags: formatFlags, Action: explain,
	}
}

func explain(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("one reason at a time, not %d: %q", c.NArg(), c.Args().Slice())
	}
	return explainWord(c.App.Writer, c.Args().First(), inJSON(c))
}

// explainWord writes what a reason means, or an exit status, for a person or as JSON. Without a word it writes about all reasons.
func explainWord(w io.Writer, word string, json bool) error {
	if word == "" {
		if json {
			return report.ReasonsJSON(w, reason.Table())
		}
		return report.PrintReasons(w)
	}
	if r, ok := reason.Find(word); ok {
		if json {
			return report.ReasonsJSON(w, []reason.Reason{r})
		}
		return report.PrintReason(w, r)
	}
	if exit, err := strconv.Atoi(word); err == nil {
		for _, g := range reason.Generals() {
			if g.Exit == exit && !json {
				return report.PrintGeneral(w, g)
			}
		}
		return usagef("no reason has the exit status %d (kgpu explain lists them)", exit)
	}
	if near := reason.Closest(word); near != "" {
		return usagef("no reason %q. Did you mean %q? (kgpu explain lists them)", word, near)
	}
	return usagef("no reason %q (kgpu explain lists them)", word)
}
