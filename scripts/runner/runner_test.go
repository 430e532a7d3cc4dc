package runner_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kgpu.dev/kgpu/scripts"
	"kgpu.dev/kgpu/scripts/runner"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// put lays a batch of these scripts down on a host, each with this timeout in seconds and a secret, and returns its
// directory.
func put(t *testing.T, h *runnertest.Host, batch string, timeout int, scripts ...string) string {
	t.Helper()
	dir := filepath.Join(h.Dir, "run", batch)
	write(t, filepath.Join(dir, "start.sh"), string(runner.Start))
	write(t, filepath.Join(dir, "runner.sh"), string(runner.Runner))
	write(t, filepath.Join(dir, "follow.sh"), string(runner.Follow))
	write(t, filepath.Join(dir, "lib.sh"), "settle_step() { :; }\n")
	write(t, filepath.Join(dir, "by"), "me@here\n")
	for i, script := range scripts {
		step := filepath.Join(dir, "steps", fmt.Sprintf("%03d", i+1))
		write(t, filepath.Join(step, "id"), fmt.Sprintf("step/%d\n", i+1))
		write(t, filepath.Join(step, "timeout"), fmt.Sprintln(timeout))
		write(t, filepath.Join(step, "script.sh"), script)
		write(t, filepath.Join(step, "values/secret"), "hunter2")
		write(t, filepath.Join(step, "files/etc/secret"), "hunter2")
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(content)
}

// start starts a batch and returns what it printed when it has ended.
func start(t *testing.T, h *runnertest.Host, dir string) string {
	t.Helper()
	return output(t, h.Shell("bash "+dir+"/start.sh"))
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return string(out)
}

func pipe(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

var (
	epoch  = regexp.MustCompile(`(?m)^(B\t.*\t)\d{13}$`)
	millis = regexp.MustCompile(`(?m)^(D\t[^\t]*\t\d+\t)\d+`)
)

// timeless takes the times out of events.
func timeless(events string) string {
	return millis.ReplaceAllString(epoch.ReplaceAllString(events, "${1}T"), "${1}T")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	dir := put(t, h, "b-1", 60,
		`echo out; echo err >&2; printf 'W\tfor\tit\n!\tof it\n'; mkdir "$KGPU_STEP/out"; printf 'a\nb' >"$KGPU_STEP/out/token"; printf last`,
		`printf 'SOME_REASON\twhat\thappened\n\n' >"$KGPU_STEP/failure"; mkdir "$KGPU_STEP/out"; echo x >"$KGPU_STEP/out/no"; exit 9`,
		`echo never`)
	want := "B\tstep/1\tT\n" +
		"L\tstep/1\tout\n" +
		"L\tstep/1\terr\n" +
		"W\tstep/1\tfor\tit\n" +
		"!\tstep/1\tof it\n" +
		"L\tstep/1\tlast\n" +
		"O\tstep/1\ttoken\tYQpi\n" +
		"D\tstep/1\t0\tT\t\t\n" +
		"B\tstep/2\tT\n" +
		"D\tstep/2\t9\tT\tSOME_REASON\twhat happened\n" +
		"E\t9\n"
	if got := timeless(start(t, h, dir)); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	for path, want := range map[string]string{"result": "9\n", "steps/001/result": "0\t\t\n", "steps/002/result": "9\tSOME_REASON\twhat happened\n"} {
		if got := read(t, dir, path); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "steps/003/result")); err == nil {
		t.Error("a step after the failed one has a result")
	}
	if left := secretsIn(t, h); left != nil {
		t.Errorf("secrets are left in %q", left)
	}
}

// secretsIn lists the files that have the secret.
func secretsIn(t *testing.T, h *runnertest.Host) []string {
	var found []string
	_ = filepath.WalkDir(h.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(read(t, path), "hunter2") {
			found = append(found, path)
		}
		return nil
	})
	return found
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"tabs":                   {`printf 'a\tb\t\n'`, "a\tb\t\n"},
		"carriage return at end": {`printf 'a\r\nb\n'`, "a\nb\n"},
		"progress bar":           {`printf '10%%\r50%%\r100%%\r\nb\n'`, "100%\nb\n"},
		"no final newline":       {`printf 'a\nb'`, "a\nb\n"},
		"empty lines":            {`printf '\n\na\n'`, "\n\na\n"},
		"NUL and binary":         {`printf 'a\000b\377\376\n'`, "ab\xff\xfe\n"},
		"NUL at the end":         {`printf 'a\n\000'`, "a\n\n"},
		"a line at a time":       {`printf a; printf 'b\n'`, "ab\n"},
		"a line of 4 KiB":        {`printf '%4096s\n' x`, strings.Repeat(" ", 4095) + "x\n"},
		"a line of 16 MB":        {`head -c 16000000 /dev/zero | tr '\0' x`, strings.Repeat("x", 4096) + " [cut]\n"},
		"like an event":          {`printf 'E\t0\nD\tx\nX\n'`, "E\t0\nD\tx\nX\n"},
		"nothing":                {`true`, ""},
		"input":                  {`cat; echo end`, "end\n"},
		"no lock is inherited":   {`for f in /proc/$$/fd/*; do readlink "$f"; done | grep -E '/(lock|alive|events)$' || echo none`, "none\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := runnertest.NewHost(t)
			out := start(t, h, put(t, h, "b-1", 60, c.script))
			var want strings.Builder
			want.WriteString("B\tstep/1\tT\n")
			for line := range strings.Lines(c.want) {
				want.WriteString("L\tstep/1\t" + line)
			}
			want.WriteString("D\tstep/1\t0\tT\t\t\nE\t0\n")
			if got := timeless(out); got != want.String() {
				t.Errorf("printed %.500q\nwant %.500q", got, want.String())
			}
		})
	}
}

// A process that left the step's group with its output does not hold the batch up.
func TestPipeLeftToADaemon(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	out := timeless(start(t, h, put(t, h, "b-1", 60, `
		setsid sleep 600 &
		until read -r _ _ _ _ group _ <"/proc/$!/stat" && [[ $group == "$!" ]]; do sleep 0.05; done # it has left
		echo $!`, `echo next`)))
	daemon := regexp.MustCompile(`L\tstep/1\t(\d+)\n`).FindStringSubmatch(out)
	if daemon == nil {
		t.Fatalf("no process ID in %q", out)
	}
	pid, _ := strconv.Atoi(daemon[1])
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon is gone: %v", err)
	}
	if want := "D\tstep/1\t0\tT\t\t\nB\tstep/2\tT\nL\tstep/2\tnext\nD\tstep/2\t0\tT\t\t\nE\t0\n"; !strings.HasSuffix(out, want) {
		t.Errorf("printed %q", out)
	}
}

func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"obedient":  `sleep 600 & echo $!; sleep 600`,
		"obstinate": `trap '' TERM; sleep 600 & echo $!; while :; do sleep 600; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := runnertest.NewHost(t)
			out := timeless(start(t, h, put(t, h, "b-1", 1, script)))
			if !strings.Contains(out, "\tSTEP_TIMEOUT\tnot done after 1 s\n") {
				t.Errorf("printed %q", out)
			}
			child := regexp.MustCompile(`L\tstep/1\t(\d+)\n`).FindStringSubmatch(out)
			if child == nil {
				t.Fatalf("no process ID in %q", out)
			}
			if pid, _ := strconv.Atoi(child[1]); alive(pid) {
				t.Errorf("process %d lives on", pid)
			}
		})
	}
}

// What a step waited for a lock is added to its time.
func TestTimeThatWasWaited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ waited, script, want string }{
		{"3600", `sleep 1.5; echo "to its end"`, "L\tstep/1\tto its end\nD\tstep/1\t0\tT\t\t\n"},
		{"1", `sleep 600`, "D\tstep/1\t124\tT\tSTEP_TIMEOUT\tnot done after 1 s\n"},
	} {
		t.Run(c.waited, func(t *testing.T) {
			t.Parallel()
			h := runnertest.NewHost(t)
			dir := put(t, h, "b-1", 1, c.script)
			write(t, filepath.Join(dir, "steps/001/waited"), c.waited+"\n")
			if out := timeless(start(t, h, dir)); !strings.Contains(out, c.want) {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// alive tells whether a process runs; a dead one that nobody waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// The status of a command that gave up by itself is not mistaken for the step's own timeout.
func TestStatus124IsNoTimeout(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	out := timeless(start(t, h, put(t, h, "b-1", 60, `exit 124`)))
	if !strings.Contains(out, "D\tstep/1\t124\tT\tSTEP_FAILED\t\n") {
		t.Errorf("printed %q", out)
	}
}

func TestProcessesLeftInTheGroupEnd(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	out := start(t, h, put(t, h, "b-1", 60, `sleep 600 & echo $!`))
	child := regexp.MustCompile(`L\tstep/1\t(\d+)\n`).FindStringSubmatch(out)
	if pid, _ := strconv.Atoi(child[1]); alive(pid) {
		t.Errorf("process %d lives on", pid)
	}
}

func TestKilledRunner(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	dir := put(t, h, "b-1", 60, `cut -d' ' -f4 /proc/$PPID/stat; exec sleep 600`)
	cmd := h.Shell("bash " + dir + "/start.sh")
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	var heard string
	for !strings.HasPrefix(heard, "L\t") {
		if heard, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	runnerPID, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(heard, "L\tstep/1\t")))
	must(t, err)
	must(t, syscall.Kill(runnerPID, syscall.SIGKILL))
	rest, err := io.ReadAll(lines)
	if string(rest) != "\nX\n" || err != nil || cmd.Wait() != nil {
		t.Errorf("then printed %q, %v", rest, err)
	}
	if secretsIn(t, h) == nil {
		t.Fatal("there are no secrets to be tidied up")
	}
	h.PowerOff() // and on again
	if got := timeless(output(t, h.Shell("bash "+dir+"/start.sh"))); !strings.HasSuffix(got, "\nX\n") {
		t.Errorf("a batch that died is started again: %q", got)
	}
	start(t, h, put(t, h, "b-2", 60, `true`))
	if left := secretsIn(t, h); left != nil {
		t.Errorf("secrets are left in %q", left)
	}
}

// A program that is killed takes no leave of its temporary files: where they are, the next batch finds them.
func TestTemporaryFiles(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	scratch := h.Dir + "-tmp"
	shared := t.TempDir()
	begun := pipe(t, shared, "begun")
	cmd := h.Shell("bash " + put(t, h, "a-1", 60, `mktemp >`+begun+`; exec sleep 600`) + "/start.sh")
	must(t, cmd.Start())
	left := strings.TrimSpace(read(t, begun))
	if filepath.Dir(left) != scratch {
		t.Errorf("a temporary file is %s", left)
	}
	if got := start(t, h, put(t, h, "b-1", 60, `:`)); !strings.Contains(got, "HOST_BUSY") {
		t.Errorf("printed %q", got)
	}
	if info, err := os.Stat(scratch); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("beside a batch that was refused: %v, %v", info, err)
	}
	h.PowerOff() // and on again
	_ = cmd.Wait()
	if _, err := os.Stat(left); err != nil {
		t.Fatal("there is nothing to be tidied up:", err)
	}

	if got := start(t, h, put(t, h, "b-2", 60, `ls -A "$TMPDIR"; mktemp >/dev/null; exit 3`)); !strings.HasSuffix(timeless(got), "B\tstep/1\tT\nD\tstep/1\t3\tT\tSTEP_FAILED\t\nE\t3\n") {
		t.Errorf("printed %q", got)
	}
	if _, err := os.Stat(scratch); !os.IsNotExist(err) {
		t.Errorf("%s: %v", scratch, err)
	}
}

func TestFollowFromAnyOffset(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	dir := put(t, h, "b-1", 60, `for i in {1..3}; do echo "line $i"; done`)
	whole := start(t, h, dir)
	if whole != read(t, dir, "events") {
		t.Fatalf("start printed %q", whole)
	}
	for offset := range len(whole) + 1 {
		if got := output(t, h.Shell(fmt.Sprintf("bash %s/follow.sh b-1 %d", dir, offset))); got != whole[offset:] {
			t.Errorf("from %d: %q", offset, got)
		}
	}
}

func TestFollowWhileItRuns(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	shared := t.TempDir()
	begun, goOn := pipe(t, shared, "begun"), pipe(t, shared, "go")
	dir := put(t, h, "b-1", 60, `echo one; echo >`+begun+`; cat `+goOn+`; echo two`)
	var all sync.WaitGroup
	printed := make([]string, 4)
	all.Go(func() { printed[0] = start(t, h, dir) })
	read(t, begun)
	for i := range 2 {
		all.Go(func() { printed[1+i] = output(t, h.Shell("bash "+dir+"/follow.sh b-1 0")) })
	}
	all.Go(func() { printed[3] = start(t, h, dir) }) // as after a connection that was lost early
	write(t, goOn, "")
	all.Wait()
	whole := read(t, dir, "events")
	if n := strings.Count(whole, "two"); n != 1 {
		t.Errorf("the step ran %d times: %q", n, whole)
	}
	for i, got := range printed {
		if got != whole {
			t.Errorf("follower %d heard %q of %q", i, got, whole)
		}
	}
}

// Who asks a batch to stop cuts no step off, and no more steps begin.
// What a step did is on the disk before anybody hears that it is done; where it cannot be written, the step is not done.
func TestDoneIsOnTheDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sync, want string }{
		"written":    {`[[ $1 != -f ]] || printf 'synced %s\n' "$*"`, "L\tstep/1\tdid\nL\tstep/1\tsynced -f /"},
		"disk fails": {`[[ $1 != -f ]]`, "D\tstep/1\t1\tT\tSTEP_FAILED\twhat was done cannot be written to the disk (/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := runnertest.NewHost(t)
			dir := putWithLib(t, h, "b-1", "echo did", "echo next")
			write(t, filepath.Join(dir, "lib.sh"), string(scripts.Lib())+"\nsync() { "+c.sync+"; }\n")
			events := timeless(start(t, h, dir))
			before, after, done := strings.Cut(events, "\nD\tstep/1\t0\t")
			if !strings.Contains(before, c.want) || done != (name == "written") || done != strings.Contains(after, "L\tstep/2\tnext") {
				t.Errorf("the events are\n%s", events)
			}
		})
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	shared := t.TempDir()
	begun, goOn := pipe(t, shared, "begun"), pipe(t, shared, "go")
	dir := put(t, h, "b-1", 60, `echo >`+begun+`; cat `+goOn+`; echo "to its end"`, `echo "another"`)
	var all sync.WaitGroup
	var whole string
	all.Go(func() { whole = start(t, h, dir) })
	read(t, begun)
	write(t, filepath.Join(dir, "stop"), "")
	write(t, goOn, "")
	all.Wait()
	if !strings.Contains(whole, "to its end") || strings.Contains(whole, "L\tstep/2") || !strings.HasSuffix(whole, "D\tstep/2\t1\t0\tCANCELLED\tanother run asked this one to stop\nE\t1\n") {
		t.Errorf("heard %q", whole)
	}
}

// A host that goes down starts nothing and says nothing: its connection ends with it, and the batch is started again.
func TestStartWhileTheHostGoesDown(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	dir := put(t, h, "b-1", 60, `true`)
	must(t, h.Stop())
	cmd := h.Shell("exec bash " + dir + "/start.sh")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	comm := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "comm")
	for name := read(t, comm); name != "sleep\n"; name = read(t, comm) { // a process that ended keeps the name of the shell
		state, err := os.ReadFile(filepath.Join(filepath.Dir(comm), "stat"))
		if err != nil || strings.Contains(string(state), ") Z ") {
			t.Fatalf("the script ended (%s, %v) and said %q", state, err, &out)
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil || out.Len() > 0 {
		t.Errorf("it was started, or said %q", &out)
	}
}

func TestNeverStarted(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	dir := put(t, h, "b-1", 60, `true`)
	if got := output(t, h.Shell("bash "+dir+"/follow.sh b-1 0")); got != "N\n" {
		t.Errorf("printed %q", got)
	}
}

func TestUnitThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	dir := put(t, h, "b-1", 60, `true`)
	cmd := h.Shell("systemd-run() { echo 'Failed to connect to bus'; return 1; }; export -f systemd-run; bash " + dir + "/start.sh")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot start the unit kgpu-b-1: Failed to connect to bus") {
		t.Errorf("%v: %s", err, out)
	}
	if left := secretsIn(t, h); left != nil {
		t.Errorf("secrets are left in %q", left)
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	shared := t.TempDir()
	begun, goOn := pipe(t, shared, "begun"), pipe(t, shared, "go")
	first := put(t, h, "a-1", 60, `echo >`+begun+`; cat `+goOn)
	done := make(chan string)
	go func() { done <- start(t, h, first) }()
	read(t, begun)
	got := start(t, h, put(t, h, "b-1", 60, `echo never`))
	if !regexp.MustCompile(`^D\tstep/1\t1\t0\tHOST_BUSY\tme@here holds this host: batch a-1, step step/1, since 20\S+Z\nE\t1\n$`).MatchString(got) {
		t.Errorf("printed %q", got)
	}
	write(t, goOn, "")
	<-done
	if got := start(t, h, put(t, h, "b-2", 60, `echo free`)); !strings.HasSuffix(got, "E\t0\n") {
		t.Errorf("printed %q", got)
	}
}

// A batch of a lock that another one came after begins no more where that one's work has begun, and leaves nothing.
func TestFence(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	numbered := func(batch string, number int64) (said, dir string) {
		t.Helper()
		dir = put(t, h, batch, 60, "echo "+batch)
		if number > 0 {
			write(t, filepath.Join(dir, "fence"), fmt.Sprintln(number))
		}
		return start(t, h, dir), dir
	}
	begins := func(batch string, number int64, want string) string {
		t.Helper()
		said, dir := numbered(batch, number)
		if !strings.Contains(said, "\t"+batch+"\n") || !strings.HasSuffix(said, "E\t0\n") {
			t.Errorf("%s said %q", batch, said)
		}
		if got := read(t, h.Dir, "fence"); got != want+"\n" {
			t.Errorf("after %s the host has noted %q, not %q", batch, got, want)
		}
		return dir
	}
	first := begins("a-1", 7, "7")
	begins("a-2", 7, "7")
	begins("b-1", 10, "10")
	begins("c-1", 0, "10")
	said, dir := numbered("a-3", 9)
	if !strings.HasPrefix(said, "D\tstep/1\t1\t0\tHOST_BUSY\tanother run has taken the cluster") || !strings.HasSuffix(said, "\nE\t1\n") || strings.Count(said, "\n") != 2 {
		t.Errorf("it said %q", said)
	}
	wantGone(t, dir)
	if got := start(t, h, first); !strings.Contains(got, "\ta-1\n") { // it has begun before, and is only followed
		t.Errorf("what had begun said %q", got)
	}
	start(t, h, put(t, h, "d-1", 60, `: >"`+h.Dir+`/forget"`))
	wantGone(t, h.Dir)
	begins("e-1", 3, "3")
}

func TestOldBatchesAreRemoved(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	for i := range 7 {
		start(t, h, put(t, h, fmt.Sprintf("b-%d", i+1), 60, `true`))
	}
	dirs, err := filepath.Glob(filepath.Join(h.Dir, "run/*"))
	must(t, err)
	for i := range dirs {
		dirs[i] = filepath.Base(dirs[i])
	}
	if want := []string{"b-3", "b-4", "b-5", "b-6", "b-7"}; !slices.Equal(dirs, want) {
		t.Errorf("left are %q", dirs)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	got := start(t, h, put(t, h, "b-1", 60, `: >"`+h.Dir+`/forget"; echo bye`))
	if !strings.HasSuffix(timeless(got), "L\tstep/1\tbye\nD\tstep/1\t0\tT\t\t\nE\t0\n") {
		t.Errorf("printed %q", got)
	}
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v", h.Dir, err)
	}
}

// One that is cut off while it forgets leaves what brings the next reset back.
func TestForgetThatIsCutOff(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	start(t, h, put(t, h, "b-1", 60, `mkdir -p "`+h.Dir+`/left" "`+h.Dir+`/ledger"; : >"`+h.Dir+`/forget"
cat >"`+h.Dir+`/../bin/find" <<'X'
#!/bin/bash
case "$*" in *operator*) PATH=${PATH#*:} find "$@"; kill -KILL $PPID ;; *) PATH=${PATH#*:} exec find "$@" ;; esac
X
chmod +x "`+h.Dir+`/../bin/find"`))
	want := []string{h.Dir + "/left", h.Dir + "/lock"}
	var left []string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && !slices.Equal(left, want); time.Sleep(50 * time.Millisecond) {
		left, _ = filepath.Glob(h.Dir + "/*")
	}
	if !slices.Equal(left, want) {
		t.Errorf("there are still %q", left)
	}
}

// A reset that was cut off before the very end leaves a note to forget everything: not for the next kgpu up.
func TestForgetOfAnEarlierReset(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	start(t, h, put(t, h, "b-1", 60, `true`))
	must(t, os.WriteFile(filepath.Join(h.Dir, "forget"), nil, 0o600))
	start(t, h, put(t, h, "b-2", 60, `mkdir -p "`+h.Dir+`/ledger/0001"`))
	if _, err := os.Stat(filepath.Join(h.Dir, "ledger/0001")); err != nil {
		t.Error(err)
	}
}

// To a clock that went back, all other batches are younger.
func TestClockThatWentBack(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	later := time.Now().Add(24 * time.Hour)
	for i := range 5 {
		id := fmt.Sprintf("b-%d", i+1)
		start(t, h, put(t, h, id, 60, `true`))
		must(t, os.Chtimes(filepath.Join(h.Dir, "run", id), later, later))
	}
	if got := start(t, h, put(t, h, "b-6", 60, `echo here`)); !strings.Contains(got, "L\tstep/1\there\n") || !strings.HasSuffix(got, "E\t0\n") {
		t.Errorf("printed %q", got)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
