package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/pkg/sftp"

	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// sftpServer starts sftp-server where the distributions put it; new files are for root only (-u). It is one line, as shellLine wants.
const sftpServer = `for s in /usr/lib/openssh /usr/libexec/openssh /usr/libexec /usr/lib/ssh; do ` +
	`if [ -x "$s/sftp-server" ]; then exec "$s/sftp-server" -u 077; fi; done; ` +
	`echo "there is no sftp-server on this machine" >&2; exit 127`

// ReadFile reads a file as root. It fails when the file exceeds the bounds, as Output does; errors.Is tells fs.ErrNotExist.
func (h *Host) ReadFile(ctx context.Context, name string, b Bounds) ([]byte, error) {
	doing := "reading " + name
	ctx, end := b.watch(ctx, h.id, doing)
	defer end(nil)
	data := bounded{limit: b.Bytes, full: end, host: h.id, doing: doing}
	err := h.sftp(ctx, doing, func(c *sftp.Client) error {
		f, err := c.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteTo(&data)
		return err
	})
	if err = data.explain(ctx, err); err != nil {
		return nil, err
	}
	return data.buf.Bytes(), nil
}

// WriteFile writes a file as root: another reader sees the old content or the new one, nothing in between, and it is on
// the disk when WriteFile returns, if the server can do that.
func (h *Host) WriteFile(ctx context.Context, name string, mode fs.FileMode, r io.Reader) error {
	return h.sftp(ctx, "writing "+name, func(c *sftp.Client) error {
		temporary := path.Join(path.Dir(name), "."+path.Base(name)+".kgpu-"+rand.Text())
		err := writeTemporary(c, temporary, mode, r)
		if err == nil {
			err = c.PosixRename(temporary, name)
		}
		if err != nil {
			_ = c.Remove(temporary)
		}
		return err
	})
}

func writeTemporary(c *sftp.Client, name string, mode fs.FileMode, r io.Reader) error {
	f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.ReadFrom(r); err != nil {
		return err
	}
	if _, ok := c.HasExtension("fsync@openssh.com"); ok {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// sftp runs do with a client of an sftp server that runs as root.
func (h *Host) sftp(ctx context.Context, doing string, do func(*sftp.Client) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	toServer, stdin := io.Pipe()
	stdout, fromServer := io.Pipe()

	ran := make(chan error, 1)
	go func() {
		err := h.run(ctx, Command{Name: doing, Line: sftpServer, Root: true, Stdin: toServer, Stdout: fromServer}, doing)
		fromServer.CloseWithError(io.EOF) // in this order: whoever waits for the server's answers first
		toServer.CloseWithError(io.ErrClosedPipe)
		ran <- err
	}()

	failed := func() error {
		client, err := sftp.NewClientPipe(stdout, stdin, sftp.UseConcurrentWrites(true)) // a file that is half written has not got its name yet
		if err != nil {
			return err
		}
		err = do(client)
		client.Close()
		return err
	}()
	stdin.Close()
	stdout.Close()
	err := <-ran

	var exit *ExitError
	switch {
	case failed == nil:
		return nil
	case errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, ErrLost): // it talks on after it was given up
	case err != nil && !errors.As(err, &exit):
		return err // the connection, sudo or the caller's context
	case exit != nil && exit.Stderr != "":
		failed = errors.New(printable.Short(lastLine(exit.Stderr), saidMost))
	}
	return &reason.Error{ID: reason.StepFailed, Host: h.id, Doing: doing, Err: failed}
}
