package process

import (
	"errors"
	"os"
	"syscall"
)

// Lock takes the exclusive lock of the file at path, waiting for it. It ends
// with the process or by the returned function. The holder may remove the file.
func Lock(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f, syscall.LOCK_EX); err != nil {
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close() // removed while we waited
	}
}

// LockShared takes a shared lock of the file or folder at path, waiting for it.
func LockShared(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, flock(f, syscall.LOCK_SH)
}

// ErrLocked says that somebody else holds the lock.
var ErrLocked = errors.New("in use")

// TryLock takes the exclusive lock of an existing file or folder, or fails
// with ErrLocked.
func TryLock(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &os.PathError{Op: "lock", Path: path, Err: ErrLocked}
	}
	return func() { _ = f.Close() }, err
}

// flock locks f, and closes it when that fails.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			_ = f.Close()
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		return nil
	}
}
