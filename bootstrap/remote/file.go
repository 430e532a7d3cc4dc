package remote

import (
	"context"
	"errors"
	"io"

	"github.com/pkg/sftp"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
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
		client, err := sftp.NewClientPipe(stdout, stdin)
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
