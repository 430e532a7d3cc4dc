package runnertest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// Hold stands for hold.sh where nobody else wants the cluster: it says that the run has it, and answers until the input ends.
func Hold(in io.Reader, out io.Writer) {
	fmt.Fprintln(out, "held 1")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if _, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			fmt.Fprintln(out, "beat", lines.Text())
		}
	}
}
