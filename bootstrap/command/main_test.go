package command

import (
	"fmt"
	"os"
	"testing"
)

// TestMain keeps the runs of the tests out of the history of whoever runs them.
func TestMain(m *testing.M) {
	if os.Getenv(scene) != "" {
		os.Exit(m.Run())
	}
	state, err := os.MkdirTemp("", "kgpu-command-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", state)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(state); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
