package runner_test

import (
	"os"
	"os/exec"
	"testing"
)

// uutils is where Debian keeps the coreutils in Rust. Ubuntu has them in the place of GNU's from 25.10 on. They differ in
// the same ways from bookworm's 0.0.17 to sid's 0.12: tail does not follow standard input, cut is not flushed by a line's
// end, sync FILE is sync(2).
const uutils = "/usr/lib/cargo/bin/coreutils"

// TestWithUutils runs the tests of this package once more, with the other coreutils.
func TestWithUutils(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(uutils + "/tail"); err != nil {
		t.Fatalf("make setup installs rust-coreutils: %v", err)
	}
	again := exec.Command(os.Args[0], "-test.skip=^TestWithUutils$")
	again.Env = append(os.Environ(), "PATH="+uutils+":"+os.Getenv("PATH"))
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
