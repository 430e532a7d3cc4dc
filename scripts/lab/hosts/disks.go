package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// A host with disks has / and /var on two file systems of its own: ext4 in sparse files, through loop devices of the machine.
// They are mounted in the host's mount namespace alone, over the folders of the host's files that they were made of.

// The folders of a host's files that are its root, but for the base system, and its /var.
const (
	systemDir = "system"
	varDir    = "var"
)

var diskDirs = []string{systemDir, varDir}

// diskSize is that of each disk, for mkfs.ext4. It takes only what is written.
const diskSize = "8G"

// GiveDisks gives these of the wanted hosts disks.
func GiveDisks(specs []Spec, names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("disks: there is to be no host %s", name)
		}
		specs[i].Disks = true
	}
	return nil
}

// makeDisks makes the disks of a new host out of its folders in dir.
func makeDisks(ctx context.Context, dir string) error {
	for _, name := range diskDirs {
		folder := filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", folder, folder+".img", diskSize)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", cmd, err, lastLine(string(out)))
		}
	}
	folder := filepath.Join(dir, varDir) // what is mounted there has it all
	return errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755))
}

// drives are the mounted disks of a boot, in the order of diskDirs: detached mounts, until the host takes them into its namespace.
// As long as they are open, the kernel does not unmount the file systems.
type drives []*os.File

// openDisks mounts the disks of the host, if it has any. That brings back what is in their journals.
func (h *Host) openDisks() (d drives, err error) {
	if !h.Disks {
		return nil, nil
	}
	for _, name := range diskDirs {
		mount, err := h.openDisk(name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("mount %s: %w", h.path(name+".img"), err), d.close())
		}
		d = append(d, mount)
	}
	return d, nil
}

func (h *Host) openDisk(name string) (*os.File, error) {
	image := h.path(name + ".img")
	if !process.Poll(10*time.Second, func() bool { return !attached(image) }) {
		return nil, errors.New("a loop device still has it from an earlier boot")
	}
	loop, err := attach(image)
	if err != nil {
		return nil, err
	}
	defer func() { _ = loop.Close() }() // the mount has it
	// The host sees by this name what is mounted: one that is the same at each boot.
	disk := h.path(name + ".disk")
	if err := os.Remove(disk); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.Symlink(loop.Name(), disk); err != nil {
		return nil, err
	}
	fs, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fsopen: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := errors.Join(
		unix.FsconfigSetString(fs, "source", disk),
		unix.FsconfigSetFlag(fs, "noinit_itable"), // it would fill the sparse file
		unix.FsconfigCreate(fs),
	); err != nil {
		return nil, fmt.Errorf("fsconfig: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("fsmount: %w", err)
	}
	return os.NewFile(uintptr(mount), disk), nil
}

// attach gives a file a loop device, which lets go of it when nobody has the device open or mounted.
func attach(image string) (*os.File, error) {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("disks need loop devices: %w", err)
	}
	defer func() { _ = control.Close() }()
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], image)
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &config)
		if err == nil {
			return loop, nil
		}
		_ = loop.Close()
		if !errors.Is(err, unix.EBUSY) { // somebody else was faster
			return nil, fmt.Errorf("configure %s: %w", loop.Name(), err)
		}
	}
}

// attached reports whether a loop device has the file.
func attached(image string) bool {
	devices, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range devices {
		if file, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(file)) == image {
			return true
		}
	}
	return false
}

// take mounts the disks, which the process has from its parent, over the folders in dir.
func (d drives) take(dir string) error {
	for i, mount := range d {
		err := unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, filepath.Join(dir, diskDirs[i]), unix.MOVE_MOUNT_F_EMPTY_PATH)
		if err != nil {
			return fmt.Errorf("mount the disk %s: %w", diskDirs[i], err)
		}
	}
	return d.close()
}

// EXT4_IOC_SHUTDOWN and EXT4_GOING_FLAGS_NOLOGFLUSH of the kernel's include/uapi/linux/ext4.h: what is not on the disk now never
// gets there, as at a power cut.
const (
	ext4Shutdown    = 0x8004587d
	withoutLogFlush = 2
)

// pull ends a host, at whose end the kernel would write all that is on its disks: its root, an overlay, stays as long as what is
// returned is open.
func (d drives) pull(init *os.Process) (root *os.File) {
	if len(d) > 0 {
		root, _ = os.Open(fmt.Sprintf("/proc/%d/root", init.Pid)) // it may have ended
	}
	_ = init.Kill()
	return root
}

// cut takes the power from the disks of a host that has ended.
func (d drives) cut() error {
	for _, mount := range d {
		root, err := unix.Openat(int(mount.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.IoctlSetPointerInt(root, ext4Shutdown, withoutLogFlush)
		_ = unix.Close(root)
		if err != nil {
			return fmt.Errorf("EXT4_IOC_SHUTDOWN of %s: %w", mount.Name(), err)
		}
	}
	return nil
}

func (d drives) close() error {
	var errs []error
	for _, mount := range d {
		errs = append(errs, mount.Close())
	}
	return errors.Join(errs...)
}
