package hosts

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A host's kernel is the machine's. One that shall run an older one is told so wherever kgpu asks: in /proc/sys/kernel/osrelease, and
// by uname.

//go:embed cards/uname.sh
var unameStandIn []byte

const (
	osrelease = "proc/sys/kernel/osrelease"
	uname     = "usr/sbin/uname"
	images    = "boot/vmlinuz-"
	modules   = "usr/lib/modules/"
)

// kernels are the names of the machine's kernel and of an older one of its line: what comes after the numbers is the same.
func kernels() (machines, older string, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", err
	}
	machines = unix.ByteSliceToString(u.Release[:])
	words := strings.Split(machines, "-")
	for len(words) > 1 && words[0] != "" && words[0][0] >= '0' && words[0][0] <= '9' {
		words = words[1:]
	}
	return machines, "5.15.0-1-" + strings.Join(words, "-"), nil
}

// oldKernelFiles are what a host has of its older kernel: an image, without a kernel in it, and the list of modules that are built
// into the machine's.
func oldKernelFiles(base string) ([]overlayFile, error) {
	machines, older, err := kernels()
	if err != nil {
		return nil, err
	}
	files := []overlayFile{
		{uname, 0o755, unameStandIn},
		{images + older, 0o600, []byte("A stand-in of the kgpu lab: there is no kernel in it.\n")},
	}
	for _, name := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		list, err := os.ReadFile(filepath.Join(base, modules, machines, name))
		if err != nil {
			return nil, err
		}
		files = append(files, overlayFile{modules + older + "/" + name, 0o644, list})
	}
	return files, nil
}

// bootKernel is the boot loader of a host with an older kernel: the machine's is newer, and started where its image is installed.
func bootKernel(root, dir string) error {
	machines, older, err := kernels()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, images+machines)); err == nil {
		return nil
	}
	return bindFile(filepath.Join(dir, "proc/osrelease"), []byte(older+"\n"), filepath.Join(root, osrelease))
}
