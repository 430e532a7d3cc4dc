package scripts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain keeps what the tests write in memory: on a disk, much of what they do is wait for dpkg's fsync. The file system is in a
// mount namespace of this process's own, so it ends with it.
func TestMain(m *testing.M) {
	const done = "KGPU_TEST_TMPDIR"
	if os.Getenv(done) == "" {
		const remount = `mount -t tmpfs -o mode=1777 tmpfs /mnt; export TMPDIR=/mnt ` + done + `=yes; exec "$0" "$@"`
		err := syscall.Exec("/usr/bin/unshare", append([]string{"unshare", "--mount", "sh", "-ec", remount}, os.Args...), os.Environ())
		fmt.Fprintf(os.Stderr, "unshare: %v\n", err)
		os.Exit(1)
	}
	status := m.Run()
	endSigning()
	os.Exit(status)
}

// sandbox is a root directory of its own with this machine's programs in it, read-only. What runs in it has its own mounts
// and its own network.
type sandbox struct {
	t      *testing.T
	root   string
	mounts string      // bash, which mounts file systems below $0, the root, before all else
	binds  [][2]string // what is mounted where; what does not begin with a slash is in the sandbox
	keys   int         // how many signing keys it has had
	hasty  bool        // steps have patience for 40 rounds: those take as long here as what they ask takes, not a second or more
}

var patience = regexp.MustCompile(`(?m)^patience=[0-9]+ `)

// onlyArchitecture is a file that tells apt what it would ask dpkg three times whenever it is run.
const onlyArchitecture = "etc/apt/apt.conf.d/00architecture"

const stepDir = "/var/lib/kgpu/run/test-1/steps/01"

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{t: t, root: t.TempDir()}
	for _, dir := range []string{
		"usr", "etc", "proc", "dev", "sys", "run", "opt", "tmp", "root", "stubs", stepDir + "/values", "var/units", "var/log/apt",
		"etc/apt/apt.conf.d", "etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/keyrings", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers",
		"var/lib/apt/lists/partial", "var/cache/apt/archives/partial",
	} {
		s.must(os.MkdirAll(s.path(dir), 0o755))
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		s.must(os.Symlink("usr/"+name, s.path(name)))
	}
	names := []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/nsswitch.conf"}
	if out, err := exec.Command("cp", append([]string{"-a", "-t", s.path("etc")}, names...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.binds = [][2]string{{"/usr", "usr"}, {"/proc", "proc"}, {"/dev", "dev"}}
	s.alternatives()
	s.write("etc/ld.so.cache", readFile(t, "/etc/ld.so.cache"))
	s.write("etc/apt/apt.conf.d/00sandbox", "APT::Sandbox::User \"root\";\n")
	s.write(onlyArchitecture, "APT::Architectures { \""+arch()+"\"; };\n")
	s.write("var/lib/dpkg/status", "")
	s.write("var/lib/dpkg/available", "")
	s.library("")
	s.stub("systemctl", readFile(t, "testdata/systemctl"))
	return s
}

// clone is another sandbox with the same in it, for a test that does not make all of it again.
func (s *sandbox) clone(t *testing.T) *sandbox {
	t.Helper()
	c := *s
	c.t, c.root = t, t.TempDir()
	c.run("cp", "-a", s.root+"/.", c.root)
	return &c
}

// made are sandboxes that several tests begin with, by name.
var made sync.Map

// begun is a sandbox that begin made, for whichever test was the first to want it.
func begun(t *testing.T, name string, begin func() *sandbox) *sandbox {
	t.Helper()
	type host struct {
		sync.Mutex
		*sandbox
	}
	kept, _ := made.LoadOrStore(name, new(host))
	h := kept.(*host)
	h.Lock()
	defer h.Unlock()
	if h.sandbox == nil {
		s := *begin()
		first := s.root
		s.root = filepath.Join(os.TempDir(), "begun "+name) // in the memory of TestMain, beyond the test
		s.run("cp", "-a", first, s.root)
		h.sandbox = &s
	}
	return h.clone(t)
}

// library is the library of the steps, with more behind it. Few tests pull the plug, and many entries are written: nothing is
// synced where there is no stub for it.
func (s *sandbox) library(more string) {
	s.t.Helper()
	s.write("var/lib/kgpu/run/test-1/lib.sh", stubbed(Lib())+"sync() { [[ ! -e /stubs/sync ]] || command sync \"$@\"; }\n"+more)
}

// alternatives are this machine's choices of programs, without those of their pages and of whole suites: there are hundreds.
func (s *sandbox) alternatives() {
	s.t.Helper()
	s.must(os.Mkdir(s.path("etc/alternatives"), 0o755))
	links, err := filepath.Glob("/etc/alternatives/*")
	s.must(err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && (filepath.Dir(target) == "/usr/bin" || filepath.Dir(target) == "/usr/sbin") {
			s.must(os.Symlink(target, s.path(link)))
		}
	}
}

func (s *sandbox) must(err error) { s.t.Helper(); must(s.t, err) }

func (s *sandbox) path(name string) string { return filepath.Join(s.root, name) }

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return string(data)
}

func (s *sandbox) read(name string) string { s.t.Helper(); return readFile(s.t, s.path(name)) }

// holds wants a file to have this content, and no other.
func (s *sandbox) holds(name, want string) {
	s.t.Helper()
	if got := s.read(name); got != want {
		s.t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

func (s *sandbox) exists(name string) bool {
	_, err := os.Lstat(s.path(name))
	return err == nil
}

// absent wants none of the files to be there.
func (s *sandbox) absent(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if s.exists(name) {
			s.t.Errorf("%s is there", name)
		}
	}
}

func (s *sandbox) write(name, content string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	s.must(os.WriteFile(s.path(name), []byte(content), 0o644))
}

func (s *sandbox) remove(name string) { s.t.Helper(); s.must(os.Remove(s.path(name))) }

// stub puts a program in front of the machine's own.
func (s *sandbox) stub(name, script string) {
	s.t.Helper()
	s.write("stubs/"+name, script)
	s.must(os.Chmod(s.path("stubs/"+name), 0o755))
}

// stubbed is a script in whose environment the stubs come first.
func stubbed(script []byte) string {
	return strings.Replace(string(script), "PATH=", "PATH=/stubs:", 1)
}

// value is an input of the next step.
func (s *sandbox) value(name, content string) {
	s.t.Helper()
	s.write(stepDir+"/values/"+name, content)
}

func (s *sandbox) file(path, content string) { s.t.Helper(); s.write(stepDir+"/files"+path, content) }

// result is how a script ended.
type result struct {
	status  int
	output  string // both streams
	failure string // reason and detail
}

// enter gives the thread that calls it mounts and a network of its own, and the sandbox's root. System calls do so in a tenth of the
// time of the programs that would, and there are thousands of scripts.
func (s *sandbox) enter() error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if s.mounts != "" {
		if out, err := exec.Command("bash", "-ec", s.mounts, s.root).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	if err := syscall.Mount("sysfs", s.path("sys"), "sysfs", 0, ""); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	for _, bind := range s.binds {
		from := bind[0]
		if !filepath.IsAbs(from) {
			from = s.path(from)
		}
		if err := syscall.Mount(from, s.path(bind[1]), "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("%s at %s: %w", bind[0], bind[1], err)
		}
	}
	if err := syscall.Mount("", s.path("usr"), "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("/usr: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	return syscall.Chroot(s.root)
}

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}

// stepText is the script of a step.
func stepText(t *testing.T, name string) []byte {
	t.Helper()
	text, err := Step(name)
	must(t, err)
	return text
}

// quoted is what a script sets a name to, in single quotes.
func quoted(t *testing.T, script []byte, name string) string {
	t.Helper()
	found := regexp.MustCompile(`\n` + name + `='([^']*)'`).FindSubmatch(script)
	if found == nil {
		t.Fatalf("the script has no %s", name)
	}
	return string(found[1])
}

// templateAssignments are those of a script that make its templates, of which some have others within.
var templateAssignments = regexp.MustCompile(`(?m)^[a-z]+_template=(?:'[^']*'|\$[a-z_]+|\\\n)+$`)

// clusterTemplate is what a script asks the API server of its objects by.
func clusterTemplate(t *testing.T, script []byte) string {
	t.Helper()
	assignments := bytes.Join(templateAssignments.FindAll(script, -1), []byte("\n"))
	text, err := exec.Command("bash", "-c", string(assignments)+"\nprintf %s \"$cluster_template\"").Output()
	if err != nil || len(text) == 0 {
		t.Fatalf("no template: %v", err)
	}
	return string(text)
}

// script runs text with the library in front of it.
func (s *sandbox) script(text string) result {
	s.t.Helper()
	return s.bash(`. "$KGPU_STEP/../../lib.sh"` + "\n" + text)
}

// step runs the step called name.
func (s *sandbox) step(name string) result {
	s.t.Helper()
	text := stepText(s.t, name)
	if s.hasty {
		text = patience.ReplaceAll(text, []byte("patience=40 "))
	}
	return s.bash(string(text))
}

func (s *sandbox) bash(text string) result {
	s.t.Helper()
	s.write(stepDir+"/script.sh", text)
	os.Remove(s.path(stepDir + "/failure"))
	cmd := exec.Command("/usr/bin/bash", stepDir+"/script.sh")
	cmd.Dir, cmd.Env = "/", []string{"PATH=/stubs:/usr/local/sbin:/usr/sbin:/usr/bin", "HOME=/root", "KGPU_STEP=" + stepDir}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the function
		started <- func() error {
			mounts, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(mounts)
			if err := s.enter(); err != nil {
				return err
			}
			if err := cmd.Start(); err != nil {
				return err
			}
			return unix.Setns(mounts, unix.CLONE_NEWNS) // nothing but the script holds on to its mounts
		}()
	}()
	s.must(<-started)
	err := cmd.Wait()
	r := result{output: out.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.status = exit.ExitCode()
	} else {
		s.must(err)
	}
	if data, err := os.ReadFile(s.path(stepDir + "/failure")); err == nil {
		r.failure = strings.TrimSpace(string(data))
	}
	return r
}

// ok fails the test unless the script succeeded.
func (s *sandbox) ok(r result) result {
	s.t.Helper()
	if r.status != 0 {
		s.t.Fatalf("status %d, failure %q, output:\n%s", r.status, r.failure, r.output)
	}
	return r
}

// twice runs a step, and once more, as the next run may.
func (s *sandbox) twice(name string) {
	s.t.Helper()
	s.ok(s.step(name))
	s.ok(s.step(name))
}

// prints wants a script to end well with this output.
func (s *sandbox) prints(script, want string) {
	s.t.Helper()
	if got := s.ok(s.script(script)).output; got != want {
		s.t.Errorf("%s prints\n%s\nwant\n%s", script, got, want)
	}
}

// parsed is what kgpu makes of what a script prints.
func parsed[T any](s *sandbox, script string, parse func([]byte) (T, error)) T {
	s.t.Helper()
	r := s.ok(s.bash(script))
	got, err := parse([]byte(r.output))
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, r.output)
	}
	return got
}

// fails fails the test unless the script ended with this status and reason.
func (s *sandbox) fails(r result, status int, reason string) {
	s.t.Helper()
	if r.status != status || !strings.HasPrefix(r.failure, reason+"\t") {
		s.t.Fatalf("status %d and failure %q, want %d and %s; output:\n%s", r.status, r.failure, status, reason, r.output)
	}
}

// volatile are places that are no part of what a host is: the programs' caches and logs, and kgpu's own directory.
var volatile = []string{"usr", "proc", "dev", "sys", "tmp", "stubs", "var/lib/kgpu", "var/log", "var/cache", "var/units.log", "var/lib/apt/lists", "var/lib/dpkg", "var/lib/apt/extended_states", "run/lock"}

// snapshot describes every file outside of the volatile places: kind, mode, owner and content.
func (s *sandbox) snapshot() map[string]string {
	s.t.Helper()
	shot := map[string]string{}
	s.must(filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.root, path)
		if err != nil || name == "." {
			return err
		}
		if slices.Contains(volatile, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content string
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		shot[name] = info.Mode().String() + " " + content
		return nil
	}))
	return shot
}

// same fails the test when the sandbox is not as the snapshot says.
func (s *sandbox) same(before map[string]string) {
	s.t.Helper()
	var diff bytes.Buffer
	now := s.snapshot()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			fmt.Fprintf(&diff, "- %s %s\n", name, before[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != before[name] {
			fmt.Fprintf(&diff, "+ %s %s\n", name, now[name])
		}
	}
	if diff.Len() > 0 {
		s.t.Fatalf("not as before:\n%s", diff.String())
	}
}

// undone undoes all that kgpu did, and wants the sandbox to be as it was before.
func (s *sandbox) undone(before map[string]string) {
	s.t.Helper()
	s.ok(s.script("undo_all"))
	s.same(before)
}

// entries counts the entries of the ledger.
func (s *sandbox) entries() int {
	s.t.Helper()
	dirs, err := filepath.Glob(s.path("var/lib/kgpu/ledger/[0-9]*"))
	s.must(err)
	return len(dirs)
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contains wants all of the parts in a text.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// lacks wants none of the parts in a text.
func lacks(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in\n%s", part, text)
		}
	}
}
