package hosts

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// create makes the files of a host, all or none.
func (l *Lab) create(ctx context.Context, s Spec) (*Host, error) {
	if h, err := l.Host(s.Name); err == nil {
		if s.Cards != nil && (h.Cards == nil || *h.Cards != *s.Cards) {
			return nil, h.fail("give it cards", "LAB_HOST_CARDS", "A host has its cards from the beginning: destroy the lab and make it anew.", nil)
		}
		if s.Disks && !h.Disks {
			return nil, h.fail("give it disks", "LAB_HOST_DISKS", "A host has its disks from the beginning: destroy the lab and make it anew.", nil)
		}
		return h, nil
	}
	h := &Host{Spec: s, lab: l}
	dir := l.Place.Host("." + s.Name)
	if _, err := os.Stat(filepath.Join(l.Base(s.Base), "etc")); err != nil {
		return nil, h.fail("take base system "+s.Base, "LAB_BASE_MISSING", "`lab prepare` makes trixie, `lab prepare "+s.Base+"` others.", err)
	}
	if err := h.fill(ctx, dir); err != nil {
		return nil, h.fail("make its files", "LAB_HOST_CREATE", "Look at the free space of "+l.State+".", err)
	}
	if err := os.Rename(dir, h.path()); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Host) fill(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	upper := filepath.Join(dir, systemDir, "upper")
	for _, d := range []string{upper, filepath.Join(dir, systemDir, "work"), filepath.Join(dir, "root"), filepath.Join(dir, "proc")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	base := h.lab.Base(h.Base)
	if err := copyTree(ctx, filepath.Join(base, "var"), filepath.Join(dir, varDir)); err != nil {
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	gateway := h.lab.Gateway()
	files := []overlayFile{
		{"etc/hostname", 0o644, []byte(h.Name + "\n")},
		{"etc/machine-id", 0o444, []byte(hex.EncodeToString(id) + "\n")},
		{"etc/hosts", 0o644, []byte("127.0.0.1 localhost\n127.0.1.1 " + h.Name + "\n")},
		{"etc/resolv.conf", 0o644, []byte("nameserver " + gateway.String() + "\n")},
	}
	keys, err := hostKeys(h.Name)
	if err != nil {
		return err
	}
	files = append(files, keys...)
	if h.Password {
		if err := h.lab.ensurePassword(); err != nil {
			return err
		}
		files = append(files, overlayFile{sudoers, 0o440, []byte("ubuntu ALL=(ALL) ALL\n")})
	}
	if h.Bastion {
		files = append(files, overlayFile{"etc/sysctl.d/90-router.conf", 0o644, []byte("net.ipv4.ip_forward = 1\n")})
	}
	cards, err := h.cardFiles(base)
	if err != nil {
		return err
	}
	if err := h.divertKmod(dir); err != nil {
		return err
	}
	for _, f := range append(files, cards...) {
		if err := f.write(base, upper); err != nil {
			return err
		}
	}
	if h.Disks {
		if err := makeDisks(ctx, dir); err != nil {
			return err
		}
	}
	if h.BaseID, err = identity(base); err != nil {
		return err
	}
	return process.Save(filepath.Join(dir, specFile), h.Spec)
}

// sudoers is where the base says what ubuntu may do.
const sudoers = "etc/sudoers.d/90-cloud-init-users"

func (l *Lab) ensurePassword() error {
	if _, err := os.Stat(l.Place.Password()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return process.WriteFile(l.Place.Password(), []byte(rand.Text()+"\n"), 0o600)
}

// identity tells a folder from another that took its place.
func identity(dir string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return fmt.Sprintf("%d-%d.%d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

// copyTree copies a tree with everything that belongs to its files, sharing
// blocks where the file system can.
func copyTree(ctx context.Context, from, to string) error {
	cmd := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", from, to)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, lastLine(stderr.String()))
	}
	return nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// overlayFile is a file of a host that its base does not have, or has otherwise.
type overlayFile struct {
	path    string
	mode    fs.FileMode
	content []byte
}

// write puts the file into the upper part of an overlay. Folders on the way
// get mode and owner from the base, where the overlay would take them from the
// upper part, and the file gets the owner of its folder.
func (f overlayFile) write(base, upper string) error {
	dir := ""
	var uid, gid uint32
	for _, part := range strings.Split(filepath.Dir(f.path), "/") {
		dir = filepath.Join(dir, part)
		mode := fs.FileMode(0o755)
		if info, err := os.Stat(filepath.Join(base, dir)); err == nil {
			st := info.Sys().(*syscall.Stat_t)
			mode, uid, gid = info.Mode(), st.Uid, st.Gid
		}
		if err := os.Mkdir(filepath.Join(upper, dir), 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := own(filepath.Join(upper, dir), mode, uid, gid); err != nil {
			return err
		}
	}
	path := filepath.Join(upper, f.path)
	if err := os.WriteFile(path, f.content, 0o600); err != nil {
		return err
	}
	return own(path, f.mode, uid, gid)
}

func own(path string, mode fs.FileMode, uid, gid uint32) error {
	return errors.Join(os.Lchown(path, int(uid), int(gid)), os.Chmod(path, mode))
}
