package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// secureBoot is the firmware's variable: four bytes of attributes, then its value.
const secureBoot = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

// Modules that the host has instead of the machine's own of that name.
var standInModules = []string{"nvidia", "nvidia_uvm", "nvidia_modeset", "nouveau", "mlx5_ib", "ib_umad"}

// showCards puts the host's cards into root's /sys and /proc, over what the machine has there. All of it is in memory and the
// host's own, so that each boot begins without drivers and none reaches the machine.
func showCards(root, dir string, c Cards) error {
	store := filepath.Join(dir, "cards")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", store, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("mount tmpfs for cards: %w", err)
	}
	// The machine's entries stay, with the host's own beside them.
	for _, path := range []string{"sys/module", "sys/firmware", "sys/bus/pci/drivers"} {
		if err := overlayOn(root, path, store); err != nil {
			return err
		}
	}
	if err := hideModules(root); err != nil {
		return err
	}
	// Of these the host has only its own.
	for _, path := range []string{"sys/bus/pci/devices", "proc/driver"} {
		private := filepath.Join(store, path)
		if err := os.MkdirAll(private, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(private, filepath.Join(root, path), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind over /%s: %w", path, err)
		}
	}
	for _, f := range c.functions() {
		if err := f.show(filepath.Join(root, "sys/bus/pci/devices", f.address)); err != nil {
			return err
		}
	}
	if c.SecureBoot {
		if err := writeAll(filepath.Join(root, secureBoot), "\x06\x00\x00\x00\x01"); err != nil {
			return err
		}
	}
	if c.OldKernel {
		if err := bootKernel(root, dir); err != nil {
			return err
		}
	}
	return bindModuleList(root, store)
}

func overlayOn(root, path, store string) error {
	over := filepath.Join(root, path)
	upper, work := filepath.Join(store, path), filepath.Join(store, "work", path)
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", over, upper, work)
	if err := unix.Mount("overlay", over, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount an overlay over /%s: %w", path, err)
	}
	return nil
}

// hideModules removes from the host's view what the machine has loaded of the modules that the host has stand-ins for: from the
// overlays, not from the machine.
func hideModules(root string) error {
	for _, m := range standInModules {
		for _, path := range []string{filepath.Join("sys/module", m), filepath.Join("sys/bus/pci/drivers", m)} {
			if err := os.RemoveAll(filepath.Join(root, path)); err != nil {
				return fmt.Errorf("hide /%s: %w", path, err)
			}
		}
	}
	return nil
}

var standInLine = regexp.MustCompile(`(?m)^(nvidia|nvidia_uvm|nvidia_modeset|nouveau|mlx5_ib|ib_umad) .*\n`)

// bindModuleList gives the host a list of loaded modules of its own, where the kernel has one.
func bindModuleList(root, store string) error {
	const list = "proc/modules"
	machines, err := os.ReadFile(filepath.Join(root, list))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return bindFile(filepath.Join(store, "modules"), standInLine.ReplaceAll(machines, nil), filepath.Join(root, list))
}

// show writes what kernel and lspci tell of a function.
func (f function) show(dir string) error {
	vendor := fmt.Sprintf("0x%04x\n", f.vendor)
	if f.vpd != "" {
		if err := writeAll(filepath.Join(dir, "vpd"), f.vpd); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"vendor": vendor, "device": "0x" + f.device + "\n", "class": "0x" + f.class + "\n",
		"subsystem_vendor": vendor, "subsystem_device": "0x" + f.subsystem + "\n", "revision": "0xa1\n",
		"numa_node": "-1\n", "irq": "0\n", "resource": "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		"config": f.configuration(),
	} {
		if err := writeAll(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

// configuration is the function's header in PCI configuration space: PCI Local Bus Specification 3.0, figure 6-1.
func (f function) configuration() string {
	vendor, device, subsystem := f.vendor, hex16(f.device), hex16(f.subsystem)
	header := make([]byte, 64)
	for at, word := range map[int]uint16{0x00: vendor, 0x02: device, 0x0a: hex16(f.class[:4]), 0x2c: vendor, 0x2e: subsystem} {
		header[at], header[at+1] = byte(word), byte(word>>8)
	}
	header[0x08] = 0xa1 // revision
	return string(header)
}

func hex16(s string) (n uint16) {
	_, _ = fmt.Sscanf(s, "%x", &n)
	return n
}

func writeAll(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// plugCards loads the drivers that the kernel asks for when it finds the cards, which udev would do.
func plugCards() error {
	out, err := exec.Command("/"+kmod, "coldplug").CombinedOutput()
	if err != nil {
		return fmt.Errorf("load the cards' drivers: %w: %s", err, lastLine(string(out)))
	}
	return nil
}
