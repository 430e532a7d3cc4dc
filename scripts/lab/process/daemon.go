package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const handOver = "KGPU_LAB_HAND_OVER_FD"

// Daemon starts this program again with args in a session of its own, its
// output appended to the file log, and writes its Record to the file record.
// The daemon begins its work (see AwaitRecord) only after that file is there:
// no daemon exists that later commands could not find.
func Daemon(log, record string, args ...string) (Record, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Record{}, err
	}
	defer func() { _ = out.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return Record{}, err
	}
	defer func() { _ = w.Close() }()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{r}
	cmd.Env = append(os.Environ(), handOver+"="+strconv.Itoa(3))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		return Record{}, fmt.Errorf("start %v: %w", args, err)
	}
	go func() { _ = cmd.Wait() }()
	rec, err := Of(cmd.Process.Pid)
	if err == nil {
		err = Save(record, rec)
	}
	if err == nil {
		_, err = w.Write([]byte{1})
	}
	return rec, err
}

// AwaitRecord returns once the caller of Daemon has written the record, and
// fails when that caller died before.
func AwaitRecord() error {
	fd, err := strconv.Atoi(os.Getenv(handOver))
	if err != nil {
		return errors.New("this verb is for the lab itself")
	}
	f := os.NewFile(uintptr(fd), "hand-over")
	defer func() { _ = f.Close() }()
	if err := os.Unsetenv(handOver); err != nil {
		return err
	}
	if _, err := io.ReadFull(f, make([]byte, 1)); err != nil {
		return fmt.Errorf("the command that started this daemon is gone: %w", err)
	}
	return nil
}
