package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// lock takes a lock of apt's or dpkg's, for this process, and returns what lets it go.
func (s *sandbox) lock(path string) (free func()) {
	s.t.Helper()
	file, err := os.Create(s.path(path))
	s.must(err)
	s.must(syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}))
	s.t.Cleanup(func() { file.Close() })
	return func() { file.Close() }
}

// fakeClock makes time pass by sleeping only: a second of it is none.
const fakeClock = `
clock=1000
uptime_seconds() { echo $clock; }
step_began=1000
sleep() { clock=$((clock + $1)); }
`

// Whatever program has a lock, and whichever: it is named, and left alone.
func TestHolderOfALock(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock", "var/lib/apt/lists/lock", "var/cache/apt/archives/lock"} {
		s := newSandbox(t)
		s.write(stepDir+"/../../lock-timeout", "0\n")
		s.lock(path)
		r := s.script("apt_wait")
		s.fails(r, 1, "HOST_APT_LOCKED")
		if want := fmt.Sprintf("scripts.test (pid %d", os.Getpid()); !strings.Contains(r.failure, want) || !strings.Contains(r.failure, ", for ") {
			t.Errorf("%s: failure %q does not name %s", path, r.failure, want)
		}
	}
}

// A name may have spaces and parentheses, and the time is that since the start of the process.
func TestProcessWords(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script(`cp /bin/sleep "/tmp/a) b ("`))
	holder := exec.Command(s.path("tmp/a) b ("), "600")
	s.must(holder.Start())
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	r := s.ok(s.script(fmt.Sprintf(`
up=$(uptime_seconds)
uptime_seconds() { echo $((up + 250)); }
process_words %d
for n in 0 59 60 3599 3600 7500; do duration_words $n; done`, holder.Process.Pid)))
	if got := r.output; !strings.HasPrefix(got, fmt.Sprintf("a) b ( (pid %d", holder.Process.Pid)) || !strings.Contains(got, ", for 4 min)\n") ||
		!strings.HasSuffix(got, "\n0 s\n59 s\n1 min\n59 min\n1 h 0 min\n2 h 5 min\n") {
		t.Errorf("printed %q", got)
	}
}

// The wait is told when it begins and every half minute, it is bounded by its own limit, and it takes nothing of the
// step's time.
func TestPatienceWithALock(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.lock("var/lib/dpkg/lock-frontend")
	s.write(stepDir+"/timeout", "60\n")
	s.write(stepDir+"/../../lock-timeout", "100\n")
	s.write(stepDir+"/../00/waited", "10\n") // by the step before this one
	r := s.script(fakeClock + "apt_wait")
	s.fails(r, 1, "HOST_APT_LOCKED")
	if !strings.HasSuffix(r.failure, "still holds the package manager; kgpu waited 1 min") {
		t.Errorf("failure %q", r.failure)
	}
	var told []string
	for line := range strings.Lines(r.output) {
		if strings.HasPrefix(line, "W\t") {
			told = append(told, line[strings.Index(line, "; "):])
		}
	}
	if got := strings.Join(told, ""); got != "; kgpu waits for another 1 min at most\n; kgpu waits for another 1 min at most\n; kgpu waits for another 30 s at most\n" {
		t.Errorf("told %q", told)
	}

	s.write(stepDir+"/waited", "0\n")
	r = s.ok(s.script(fakeClock + `
eval "$(declare -f apt_holder | sed '1s/apt_holder/holder/')"
apt_holder() { [[ $clock -lt 1080 ]] && holder; }
apt_wait
lock_waited
seconds_left`))
	if !strings.HasSuffix(r.output, "\n80\n45\n") {
		t.Errorf("80 s were waited of the step's 60: %q", r.output)
	}
}

// While a step waits, the account is ahead of the time, so that the runner does not end it.
func TestAccountWhileItWaits(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.lock("var/lib/dpkg/lock-frontend")
	r := s.ok(s.script(fakeClock + `
sleep() { clock=$((clock + $1)); lock_waited; }
eval "$(declare -f apt_holder | sed '1s/apt_holder/holder/')"
apt_holder() { [[ $clock -lt 1006 ]] && holder; }
apt_wait`))
	if !strings.HasSuffix(r.output, "\n10\n12\n14\n") {
		t.Errorf("accounts %q", r.output)
	}
}

// Somebody else wants the batch to stop.
func TestWaitThatIsToStop(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.lock("var/lib/dpkg/lock-frontend")
	s.write(stepDir+"/../../stop", "")
	s.fails(s.script("apt_wait"), 1, "HOST_APT_LOCKED")
}

// Somebody is quicker than kgpu: it waits again. That apt is not asked while the lock is held shows in that a program
// runs in vain only once.
func TestLockLostToAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ said, who string }{
		{"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (aptd)", "aptd (pid 4711)"},
		{"E: Could not get lock /var/lib/dpkg/lock - open (11: Resource temporarily unavailable)", "a process that does not show"},
		{"dpkg: error: dpkg frontend lock was locked by another process with pid 4712", "a process (pid 4712)"},
		{"dpkg: error: dpkg frontend is locked by another process", "a process that does not show"},
	} {
		s := newSandbox(t)
		r := s.ok(s.script(fakeClock + `
runs=0
apt_run() { runs=$((runs + 1)); if [[ $runs == 1 ]]; then clock=$((clock + 5)); echo '` + c.said + `' >"$apt_log"; return 100; fi; }
apt_get install one
echo $runs $(lock_waited)`))
		if !strings.Contains(r.output, "W\tthe package manager, held by "+c.who+";") || !strings.HasSuffix(r.output, "\n2 7\n") {
			t.Errorf("%s: %q", c.said, r.output)
		}
	}
	// What no waiting helps against.
	s := newSandbox(t)
	r := s.script("apt_run() { echo 'E: Could not get lock /var/lib/dpkg/lock-frontend - open (30: Read-only file system)' >\"$apt_log\"; return 100; }; apt_get install one || apt_failed installing")
	s.fails(r, 1, "STEP_FAILED")
}

// The real thing: a lock that is free again lets the step go on.
func TestLockThatIsLetGo(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1"})
	free := s.lock("var/lib/apt/lists/lock")
	s.must(syscall.Mkfifo(s.path("tmp/waits"), 0o600))
	go func() {
		_, _ = os.ReadFile(s.path("tmp/waits"))
		free()
	}()
	s.ok(s.script(`sleep() { if [[ ! -e /tmp/told ]]; then : >/tmp/told; echo >/tmp/waits; fi; command sleep 0.1; }; apt_install one`))
	if got := s.status("one"); got != "install installed 1" || !s.exists("tmp/told") {
		t.Errorf("one: %q", got)
	}
	lacks(t, s.ok(s.script("apt_wait; apt_install one")).output, "W\t") // nobody has the lock
}
