package hosts

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed private-proc.txt
var privateProc string

const (
	swaps       = "swaps"
	noSwap      = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	productUUID = "/sys/class/dmi/id/product_uuid"
)

func privateSettings() []string {
	var paths []string
	for line := range strings.Lines(privateProc) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			paths = append(paths, line)
		}
	}
	return paths
}

// bindPrivate puts files from dir over what all hosts would share with the
// machine in root's /proc and /sys. Each boot has a new boot id and the
// machine's settings; swap and hardware identity last as long as the host.
func bindPrivate(root, dir string) error {
	settings := filepath.Join(dir, "sys")
	for _, p := range privateSettings() {
		value, err := os.ReadFile(filepath.Join("/proc/sys", p))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := bindFile(filepath.Join(settings, p), value, filepath.Join(root, "proc/sys", p)); err != nil {
			return err
		}
	}
	uuid, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return err
	}
	if err := bindFile(filepath.Join(settings, "boot_id"), uuid, filepath.Join(root, "proc/sys/kernel/random/boot_id")); err != nil {
		return err
	}
	if err := bindLasting(filepath.Join(dir, swaps), []byte(noSwap), filepath.Join(root, "proc/swaps")); err != nil {
		return err
	}
	if err := bindProductUUID(root, dir); err != nil {
		return err
	}
	return bind(filepath.Join(root, "dev/null"), filepath.Join(root, "proc/sysrq-trigger"))
}

// bindProductUUID gives the host hardware of its own where the machine shows its.
func bindProductUUID(root, dir string) error {
	if _, err := os.Stat(filepath.Join(root, productUUID)); err != nil {
		return nil
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return bindLasting(filepath.Join(dir, "product_uuid"), []byte(uuid), filepath.Join(root, productUUID))
}

func bindFile(file string, content []byte, over string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	return bind(file, over)
}

// bindLasting binds a file that keeps what it had at the last boot.
func bindLasting(file string, first []byte, over string) error {
	if _, err := os.Stat(file); err == nil {
		return bind(file, over)
	}
	return bindFile(file, first, over)
}

func bind(from, over string) error {
	err := unix.Mount(from, over, "", unix.MS_BIND, "")
	if errors.Is(err, unix.ENOENT) {
		return nil // this kernel has no such file
	}
	if err != nil {
		return fmt.Errorf("bind %s over %s: %w", from, over, err)
	}
	return nil
}
