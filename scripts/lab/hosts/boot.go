package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/cgroup"
)

// plan is what the supervisor tells the first process of a host through a
// pipe, once control groups and network are there.
type plan struct {
	Hostname    string             `json:"hostname"`
	Dir         string             `json:"dir"`             // the host's files
	Disks       int                `json:"disks,omitempty"` // how many there are, mounted, after the plan's pipe
	Names       string             `json:"names,omitempty"` // of the lab's internet, lines of the hosts file
	Base        string             `json:"base"`            // root file system below the overlay
	Hierarchies []cgroup.Hierarchy `json:"hierarchies"`
	Password    string             `json:"password,omitempty"` // for ubuntu, at the first boot
	Cards       *Cards             `json:"cards,omitempty"`
}

const planFD = 3

// Boot is the first process of a host: it builds the host's view of the
// machine and becomes its systemd. It returns only on failure. It must run on
// the main thread and there alone: namespaces and capabilities are a thread's.
func Boot() error {
	f := os.NewFile(planFD, "plan")
	var p plan
	if err := json.NewDecoder(f).Decode(&p); err != nil {
		return fmt.Errorf("read the boot plan: %w", err)
	}
	_ = f.Close()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("new cgroup namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(p.Hostname)); err != nil {
		return err
	}
	unix.Umask(0)
	var disks drives
	for i := range p.Disks {
		disks = append(disks, os.NewFile(uintptr(planFD+1+i), diskDirs[i]))
	}
	root := filepath.Join(p.Dir, "root")
	if err := mountAll(p, disks, root); err != nil {
		return err
	}
	if err := refreshNames(filepath.Join(root, "etc/hosts"), p.Names); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(p.Dir, systemDir, "upper/etc/shadow"))
	first := errors.Is(err, os.ErrNotExist)
	if err := enter(root); err != nil {
		return err
	}
	unix.Umask(0o022)
	if p.Password != "" && first {
		if err := setPassword(p.Password); err != nil {
			return err
		}
	}
	if p.Cards != nil {
		if err := plugCards(); err != nil {
			return err
		}
	}
	return becomeInit()
}

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

const (
	quiet  = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	device = unix.MS_NOSUID | unix.MS_NOEXEC
)

func mountAll(p plan, disks drives, root string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := disks.take(p.Dir); err != nil {
		return err
	}
	system := filepath.Join(p.Dir, systemDir)
	overlay := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", p.Base, filepath.Join(system, "upper"), filepath.Join(system, "work"))
	if err := mountEach(root, []mount{
		{"overlay", "", "overlay", 0, overlay},
		// Container engines put overlays into /var, and an overlay cannot be the upper part of another.
		{filepath.Join(p.Dir, varDir), "var", "", unix.MS_BIND, ""},
		{"proc", "proc", "proc", quiet, ""},
		{"sysfs", "sys", "sysfs", quiet, ""},
		{"tmpfs", "dev", "tmpfs", unix.MS_NOSUID, "mode=755"},
		{"tmpfs", "run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	}); err != nil {
		return err
	}
	if err := cgroup.Mount(root, p.Hierarchies); err != nil {
		return err
	}
	if err := makeDevices(filepath.Join(root, "dev")); err != nil {
		return err
	}
	if err := mountEach(root, []mount{
		{"devpts", "dev/pts", "devpts", device, "newinstance,ptmxmode=0666,mode=620,gid=5"},
		{"tmpfs", "dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"mqueue", "dev/mqueue", "mqueue", quiet, ""},
	}); err != nil {
		return err
	}
	if err := bindPrivate(root, filepath.Join(p.Dir, "proc")); err != nil || p.Cards == nil {
		return err
	}
	return showCards(root, p.Dir, *p.Cards)
}

func mountEach(root string, mounts []mount) error {
	for _, m := range mounts {
		if err := unix.Mount(m.source, filepath.Join(root, m.target), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s at /%s: %w", m.source, m.target, err)
		}
	}
	return nil
}

// makeDevices fills /dev: a plain tmpfs, for a devtmpfs would be the machine's.
func makeDevices(dev string) error {
	for _, d := range []struct {
		name         string
		mode         uint32
		major, minor uint32
	}{
		{"null", 0o666, 1, 3}, {"zero", 0o666, 1, 5}, {"full", 0o666, 1, 7},
		{"random", 0o666, 1, 8}, {"urandom", 0o666, 1, 9}, {"kmsg", 0o644, 1, 11},
		{"tty", 0o666, 5, 0}, {"fuse", 0o666, 10, 229}, {"net/tun", 0o666, 10, 200},
	} {
		path := filepath.Join(dev, d.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := unix.Mknod(path, unix.S_IFCHR|d.mode, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("mknod %s: %w", path, err)
		}
	}
	for _, dir := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// enter makes root the root and lets go of the machine's. The old root is
// mounted over the new one for a moment, so no folder is needed for it.
func enter(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the machine's root: %w", err)
	}
	return unix.Chdir("/")
}

const namesMark = "\t# the lab's internet"

// refreshNames puts the names of the lab's internet into the host's hosts file,
// which stays as it is when it has them already.
func refreshNames(path, want string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var have, others strings.Builder
	for line := range strings.Lines(string(before)) {
		if strings.HasSuffix(line, namesMark+"\n") {
			have.WriteString(line)
		} else {
			others.WriteString(line)
		}
	}
	if have.String() == want {
		return nil
	}
	return os.WriteFile(path, []byte(others.String()+want), 0o644)
}

func setPassword(password string) error {
	cmd := exec.Command("/usr/sbin/chpasswd")
	cmd.Stdin = strings.NewReader("ubuntu:" + password + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("chpasswd: %w: %s", err, lastLine(string(out)))
	}
	return nil
}

func becomeInit() error {
	for _, c := range []uintptr{unix.CAP_SYS_TIME, unix.CAP_SYS_MODULE} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	files.Cur = files.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	// In a container systemd reads its kernel command line from its arguments. What it starts that is written in Go (containerd, the
	// kubelet) collects garbage less often: many hosts share few processors.
	legacy := "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
	err := syscall.Exec("/sbin/init",
		[]string{"/sbin/init", "systemd.log_target=journal", "systemd.show_status=0", "systemd.setenv=GOGC=400", legacy},
		[]string{"container=kgpu-lab", "TERM=dumb", "PATH=" + defaultPath, legacy})
	return errors.Join(errors.New("start /sbin/init"), err)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
