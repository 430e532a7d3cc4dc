package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/scripts/lab/hosts"
	"kgpu.dev/kgpu/scripts/lab/internet"
)

// faultCommand is the verb that lets the lab's internet go wrong.
func faultCommand() *cli.Command {
	return &cli.Command{Name: "fault", Usage: "let the lab's internet go wrong", Subcommands: []*cli.Command{
		{Name: "add", Usage: "answer requests with an error, half of the file, another file, or not at all",
			ArgsUsage: "HOSTNAME/PATHPREFIX status=CODE[,retry-after=SECONDS]|truncate|tamper|hang[,times=N]", Action: addFault},
		{Name: "list", Usage: "print the faults there are", Action: lab(listFaults)},
		{Name: "clear", Usage: "end all faults", Action: lab(func(l *hosts.Lab) error { return faults(l).Clear() })},
	}}
}

func faults(l *hosts.Lab) internet.Faults { return internet.Faults{File: l.Faults()} }

func addFault(c *cli.Context) error {
	if err := noMore(c, 2); err != nil {
		return err
	}
	f, err := internet.ParseFault(c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return fmt.Errorf("%w [LAB_USAGE]", err)
	}
	l, err := open(c)
	if err != nil {
		return err
	}
	return faults(l).Add(f)
}

func listFaults(l *hosts.Lab) error {
	all, err := faults(l).List()
	if err != nil {
		return err
	}
	for _, f := range all {
		if _, err := fmt.Fprintln(l.Out, f); err != nil {
			return err
		}
	}
	return nil
}
