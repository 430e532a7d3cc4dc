// Command outside asks the internet for everything that kgpu names: repositories and the keys that sign them, packages, container
// images, files with a checksum. It takes the names from the tables that kgpu itself uses (package catalog, the embedded
// manifests), and prints a table of what is dead, changed, aged, or has something newer. It changes nothing.
//
// Exit status 1: something is dead, changed or aged; 3: nothing worse than newer; 2: it was called wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

func main() {
	all := flag.Bool("all", false, "show what is as kgpu says, too")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(os.Stderr, "asking for everything that kgpu names; the lists of whole distributions take a few minutes")
	rows := survey(ctx, newWorld(), time.Now())
	print(os.Stdout, rows, *all)
	os.Exit(status(rows))
}

// status is the exit status for what was found.
func status(rows []row) int {
	switch worst(rows) {
	case ok:
		return 0
	case newer:
		return 3
	}
	return 1
}

// print writes the table, and a line that counts.
func print(out io.Writer, rows []row, all bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	count := map[state]int{}
	for _, r := range rows {
		count[r.state]++
		if all || r.state != ok {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.state, r.name, r.where, r.found)
		}
	}
	w.Flush()
	fmt.Fprintf(out, "%d names of the catalog of %s: %d ok, %d dead, %d changed, %d aged, %d with something newer\n",
		len(rows), catalog.AsOf.Format(time.DateOnly), count[ok], count[dead], count[changed], count[aged], count[newer])
}
