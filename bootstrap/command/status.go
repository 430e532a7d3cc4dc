package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/status"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// Status is kgpu status.
func Status() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show hosts, nodes, cards and who uses them, and what is not as the inventory says", ArgsUsage: inventoryArgument,
		Description: "Looks at all hosts, and changes nothing. The exit status is 0 when all is well and 2 when something is not: a host\n" +
			"that cannot be reached, a node that is not ready or takes no pods, cards that cannot be used, a certificate that\n" +
			"ends in less than 30 days, a pod of the cluster itself that does not start, something for `kgpu up` to do. While\n" +
			"kgpu is at work on the cluster it says so, with 2, and judges nothing else but who can be reached. With --watch it\n" +
			"is that of the last look.\n" +
			"The fields of --output json and yaml are described by `kgpu schema status`.",
		Flags: slices.Concat(inventoryFlags, sshFlags, statusFlags), Action: showStatus,
	}
}

var statusFlags = []cli.Flag{
	&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: table, wide, json or yaml", Value: "table"},
	&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "look again and again, until Ctrl-C"},
	&cli.DurationFlag{Name: "interval", Usage: "pause between two looks of --watch: `TIME`, such as 5s or 1m", Value: 5 * time.Second},
}

// errNotWell is the answer that something is not well.
var errNotWell = errors.New("something is not well")

func showStatus(c *cli.Context) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	print, ok := statusFormats[c.String("output")]
	if !ok {
		return usagef("--output is table, wide, json or yaml, not %q", c.String("output"))
	}
	every := time.Duration(0)
	switch {
	case c.Bool("watch") && c.Duration("interval") < time.Second:
		return usagef("--interval is at least 1s, not %s", c.Duration("interval"))
	case c.Bool("watch"):
		every = c.Duration("interval")
	case c.IsSet("interval"):
		return usagef("--interval is for --watch")
	}
	people := c.String("output") == "table" || c.String("output") == "wide"
	well := true
	err = look.Status(c.Context, options(c, inv, event.Discard).Options, every, func(r *status.Report) error {
		well = r.Well
		s := &screen{out: c.App.Writer}
		_, s.height, _ = term.GetSize(int(os.Stdout.Fd())) // it may be another now; below zero: this is no terminal
		switch {
		case every == 0 || !people:
			return print(s.out, r)
		case s.height > 0:
			return s.draw(r, every, print)
		}
		return s.append(r, print)
	})
	if err == nil && !well {
		err = errNotWell
	}
	return err
}

// statusFormats are the values of --output.
var statusFormats = map[string]func(w io.Writer, r *status.Report) error{
	"table": func(w io.Writer, r *status.Report) error {
		return report.PrintStatus(w, r, report.StatusOptions{})
	},
	"wide": func(w io.Writer, r *status.Report) error {
		return report.PrintStatus(w, r, report.StatusOptions{Wide: true})
	},
	"json": report.StatusJSON,
	"yaml": report.StatusYAML,
}

// screen is a terminal on which one picture takes the place of another.
type screen struct {
	out    io.Writer
	height int
}

// draw shows the report at the top of the screen, as much of it as there is room for. What is on the screen is overwritten
// and not erased before, or it would flicker.
func (s *screen) draw(r *status.Report, every time.Duration, print func(io.Writer, *status.Report) error) error {
	text := &report.Sheet{As: report.LookOf(s.out)}
	text.As.Width = max(text.As.Width-1, 0) // the last column stays free: a character there would be erased with the rest of the line
	fmt.Fprintf(text, "%s, every %s; Ctrl-C ends it\n\n", r.Time.Local().Format(time.TimeOnly), every)
	if err := print(text, r); err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, clipped(strings.TrimSuffix(line, "\n"), text.As.Width))
	}
	if room := s.height - 1; len(lines) > room && room > 1 { // the cursor's line stays free
		more := len(lines) - room + 1
		lines = append(lines[:room-1], clipped("… "+plural.Of(more, "more line")+": without --watch there is room for all", text.As.Width))
	}
	const end = ansi.EraseLineRight + "\n"
	_, err := io.WriteString(s.out, ansi.CursorHomePosition+strings.Join(lines, end)+end+ansi.EraseScreenBelow)
	return err
}

// clipped is a line that is no wider; a width of zero has room for everything.
func clipped(line string, width int) string {
	if width == 0 {
		return line
	}
	return ansi.TruncateWc(line, width, "")
}

// append shows the report after those before, with the time above it: there is no screen.
func (s *screen) append(r *status.Report, print func(io.Writer, *status.Report) error) error {
	if _, err := fmt.Fprintln(s.out, r.Time.Format(time.RFC3339)); err != nil {
		return err
	}
	if err := print(s.out, r); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out)
	return err
}
