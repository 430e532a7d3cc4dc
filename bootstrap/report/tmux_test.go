package report

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/report/live"
)

// inTmux tells this test's program that it runs in tmux, and how many hosts it has to show.
const inTmux = "KGPU_TEST_TMUX"

// tmuxStops are the moments that are looked at in turn.
var tmuxStops = []struct {
	moment string
	second int
}{{"middle", 40}, {"failed", 88}, {"end", 1000}}

// A real terminal shows what the emulated one does.
func TestFramesInTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed (make setup does)")
	}
	for _, hosts := range []int{3, 200} {
		socket := filepath.Join(t.TempDir(), "socket")
		tmux := func(args ...string) string {
			cmd := exec.Command("tmux", append([]string{"-u", "-f", "/dev/null", "-S", socket}, args...)...)
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("tmux %s: %v: %s", args[0], err, out)
			}
			return string(out)
		}
		program := fmt.Sprintf("stty -icanon -echo; exec env NO_COLOR= %s '-test.run=^TestTmuxScene$'", os.Args[0])
		tmux("new-session", "-d", "-x", "80", "-y", "24", "-e", inTmux+"="+fmt.Sprint(hosts), program)
		t.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() })
		for _, stop := range tmuxStops {
			tmux("wait-for", "shown")
			lines := strings.Split(tmux("capture-pane", "-p"), "\n")
			for i := range lines {
				lines[i] = strings.TrimRight(lines[i], " ")
			}
			got := strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
			golden(t, fmt.Sprintf("view/%d-hosts-80x24-%s.txt", hosts, stop.moment), got)
			tmux("wait-for", "-S", "next")
		}
	}
}

// TestTmuxScene is no test: it is what runs in tmux.
func TestTmuxScene(t *testing.T) {
	var hosts int
	if _, err := fmt.Sscan(os.Getenv(inTmux), &hosts); err != nil {
		t.Skip("for the other test")
	}
	answers := bufio.NewReader(os.Stdin)
	w := &watched{View: newView(live.NewScreen(os.Stdout), Normal)}
	w.size, w.now = sizeOf(os.Stdout), func() time.Time { return w.clock }
	events := fleet(hosts)
	for _, stop := range tmuxStops {
		now := until(events, stop.second)
		w.tell(events[:now]...)
		events = events[now:]
		// A terminal answers in order: when it does, it has drawn what came before.
		fmt.Print("\x1b[6n")
		if _, err := answers.ReadString('R'); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"wait-for", "-S", "shown"}, {"wait-for", "next"}} {
			must(t, exec.Command("tmux", args...).Run())
		}
	}
	os.Exit(0)
}
