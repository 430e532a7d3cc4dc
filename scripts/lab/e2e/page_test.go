package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ran are the command lines of kgpu that tests have run.
var ran struct {
	mu   sync.Mutex
	args [][]string
}

func remember(args []string) {
	ran.mu.Lock()
	defer ran.mu.Unlock()
	ran.args = append(ran.args, args)
}

// pageCommand matches a command of kgpu on a page: in a code span, or on a line of its own.
var pageCommand = regexp.MustCompile("(?m)(?:`|^    )kgpu ([a-z][^`\n]*)")

// onlyLong are commands that only `make test-all` runs.
var onlyLong = []string{"add-control-plane", "certs renew", "remove-control-plane"}

// unrun is the error of commands of docs/operations.md that no test has run, with the options that the page gives them. Where only
// some tests were asked for, there is none.
func unrun() error {
	if flag.Lookup("test.run").Value.String() != "" {
		return nil
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "operations.md"))
	if err != nil {
		return err
	}
	found := pageCommand.FindAllStringSubmatch(string(page), -1)
	if len(found) < 20 {
		return fmt.Errorf("only %d commands were found in docs/operations.md", len(found))
	}
	var missing []error
	for _, m := range found {
		want := strings.Fields(m[1])
		if testing.Short() && slices.Contains(onlyLong, strings.Join(verbOf(want), " ")) {
			continue
		}
		if !slices.ContainsFunc(ran.args, func(args []string) bool { return isRunOf(want, args) }) {
			missing = append(missing, fmt.Errorf("docs/operations.md has `kgpu %s`, which no test runs", m[1]))
		}
	}
	return errors.Join(missing...)
}

// isRunOf reports whether a command line is that command of the page, with all of its options.
func isRunOf(want, args []string) bool {
	if verb := verbOf(want); len(args) < len(verb) || !slices.Equal(args[:len(verb)], verb) {
		return false
	}
	return !slices.ContainsFunc(want, func(word string) bool {
		return strings.HasPrefix(word, "--") && !slices.ContainsFunc(args, func(a string) bool { return a == word || strings.HasPrefix(a, word+"=") })
	})
}

// verbOf is the command of a command line, with its subcommand.
func verbOf(args []string) []string {
	if len(args) > 1 && slices.Contains([]string{"certs", "runs", "user"}, args[0]) && !strings.HasPrefix(args[1], "-") {
		return args[:2]
	}
	return args[:1]
}
