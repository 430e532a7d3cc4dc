package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/pkg/sftp"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Shell lines that read their data from standard input, a line each. A file that is sent has the name of its own until it is
// whole (partOf). One whose connection was lost while it got its name may have it already.
const (
	sumLine    = `IFS= read -r name && exec sha256sum <"$name"`
	arriveLine = `IFS= read -r name && IFS= read -r part && read -r sum && read -r mode || exit; ` +
		`if [ -e "$part" ]; then [ "$(sha256sum <"$part")" = "$sum  -" ] || { rm -f "$part"; exit 65; }; chmod "$mode" "$part" && sync "$part" && mv -fT "$part" "$name" || exit; fi; ` +
		`[ "$(sha256sum <"$name")" = "$sum  -" ] || exit 65; sync "$(dirname "$name")"`
)

// notWhole is the exit status of arriveLine where the sum is another (EX_DATAERR of sysexits.h).
const notWhole = 65

// maxStalls ends a transfer whose connection is lost again and again without a byte having come through.
const maxStalls = 3

func partOf(name string) string { return name + ".kgpu-part" }

// Download copies a file of the host, which root reads, to w, with a few packets of 32 KiB in memory. When the connection is
// lost it reconnects and goes on where it stopped. In the end the SHA-256 sum of what came must be that of the file on the
// host: STEP_FAILED tells of another one, as when the file changed meanwhile. The bounds are those of Output. After an error,
// w may have a part of the file; errors.Is tells fs.ErrNotExist.
func (h *Host) Download(ctx context.Context, name string, w io.Writer, b Bounds) error {
	doing := "downloading " + name
	ctx, end := b.watch(ctx, h.id, doing)
	defer end(nil)
	came := &arrival{to: w, sum: sha256.New(), limit: b.Bytes, full: func() {
		end(&reason.Error{ID: reason.HostOutputTooLarge, Host: h.id, Doing: doing, Detail: fmt.Sprintf("it is longer than %d bytes", b.Bytes)})
	}}
	err := h.resume(ctx, &came.size, func() error {
		return h.sftp(ctx, doing, func(c *sftp.Client) error {
			f, err := c.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.Seek(came.size, io.SeekStart); err != nil {
				return err
			}
			_, err = f.WriteTo(came)
			return err
		})
	})
	if err != nil {
		return err
	}
	var there bounded
	err = h.resume(ctx, &came.size, func() error {
		there = bounded{limit: 1 << 10, full: end, host: h.id, doing: doing}
		return h.run(ctx, Command{Name: "sha256sum", Line: sumLine, Root: true, Stdin: strings.NewReader(name + "\n"), Stdout: &there}, doing)
	})
	if sum := fmt.Sprintf("%x  -\n", came.sum.Sum(nil)); err == nil && there.buf.String() != sum {
		return h.otherSum(doing)
	}
	return err
}

// Upload makes size bytes of r a file of the host, which belongs to root and has this mode. Until all of it is there, is on
// the disk and has the right SHA-256 sum, it has another name, and the file is what it was. When the connection is lost it
// reconnects and goes on where it stopped. Of the bounds, the time counts. After an error, a part of it may lie beside the file.
func (h *Host) Upload(ctx context.Context, r io.ReaderAt, size int64, name string, mode fs.FileMode, b Bounds) error {
	doing := "uploading " + name
	ctx, end := b.watch(ctx, h.id, doing)
	defer end(nil)
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(r, 0, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", h.id, doing, err)
	}
	var sent int64
	err = h.resume(ctx, &sent, func() error {
		return h.sftp(ctx, doing, func(c *sftp.Client) error {
			how := os.O_WRONLY | os.O_CREATE
			if sent == 0 {
				how |= os.O_TRUNC
			}
			f, err := c.OpenFile(partOf(name), how)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err = f.Seek(sent, io.SeekStart); err != nil {
				return err
			}
			_, err = f.ReadFromWithConcurrency(io.NewSectionReader(r, sent, size-sent), 0)
			if at, lost := f.Seek(0, io.SeekCurrent); lost == nil { // all before it was acknowledged
				sent = at
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	err = h.resume(ctx, &sent, func() error {
		what := fmt.Sprintf("%s\n%s\n%x\n%o\n", name, partOf(name), sum.Sum(nil), mode.Perm())
		return h.run(ctx, Command{Name: "sha256sum", Line: arriveLine, Root: true, Stdin: strings.NewReader(what)}, doing)
	})
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Status == notWhole {
		return h.otherSum(doing)
	}
	return err
}

// resume tries until it is done or fails otherwise than by a loss of the connection, and reconnects in between. moved is how
// far the transfer is.
func (h *Host) resume(ctx context.Context, moved *int64, try func() error) error {
	for stalls := 0; ; stalls++ {
		before := *moved
		err := try()
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err
		}
		if *moved > before {
			stalls = 0
		}
		if stalls == maxStalls {
			return err
		}
		if err := h.Reconnect(ctx); err != nil {
			return err
		}
	}
}

func (h *Host) otherSum(doing string) error {
	return &reason.Error{
		ID: reason.StepFailed, Host: h.id, Doing: doing, Detail: "what arrived has another SHA-256 sum than what was sent: the file changed meanwhile, or a disk is broken",
	}
}

// arrival passes on what comes of a file, up to a limit, of which full hears.
type arrival struct {
	to    io.Writer
	sum   hash.Hash
	size  int64
	limit int64
	full  func()
}

func (a *arrival) Write(p []byte) (int, error) {
	if a.size+int64(len(p)) > a.limit {
		a.full()
		return 0, errShut
	}
	n, err := a.to.Write(p)
	a.sum.Write(p[:n])
	a.size += int64(n)
	return n, err
}
