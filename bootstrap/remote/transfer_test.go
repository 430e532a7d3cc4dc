package remote

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// noise is data in which a piece that is lost, or comes twice, shows.
func noise(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // never fails
	return data
}

// cutting passes on what is written or read, and cuts the connection once so many bytes have gone by.
type cutting struct {
	to   io.Writer
	from io.ReaderAt
	left int
	cut  func()
}

func (c *cutting) Write(p []byte) (int, error) {
	c.count(len(p))
	return c.to.Write(p)
}

func (c *cutting) ReadAt(p []byte, at int64) (int, error) {
	c.count(len(p))
	return c.from.ReadAt(p, at)
}

func (c *cutting) count(n int) {
	if c.left > 0 && c.left <= n {
		c.cut()
	}
	c.left -= n
}

func TestTransfersGoOnAfterTheConnectionIsLost(t *testing.T) {
	s := startSSHD(t)
	h := dial(t, s.host)
	const size = 9<<20 + 17
	data := noise(size)
	name := filepath.Join(t.TempDir(), "a file with 'quotes' and $(signs)")
	b := Bounds{Bytes: size, Time: time.Minute}
	cuts := 0
	cut := func() { cuts++; s.kill() }

	// What is read first is its sum.
	must(t, h.Upload(t.Context(), &cutting{from: bytes.NewReader(data), left: size + 4<<20, cut: cut}, size, name, 0o640, b))
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes are there, %v", len(got), err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	var got bytes.Buffer
	if err := h.Download(t.Context(), name, &cutting{to: &got, left: 4 << 20, cut: cut}, b); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes came, %v", got.Len(), err)
	}
	if cuts != 2 {
		t.Errorf("the connection was cut %d times, want 2", cuts)
	}
	if left, err := filepath.Glob(filepath.Dir(name) + "/*"); err != nil || len(left) != 1 {
		t.Errorf("there is %q, %v", left, err)
	}
}

func TestTransfers(t *testing.T) {
	h := dial(t, startSSHD(t).host)
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	upTo := func(n int64) Bounds { return Bounds{Bytes: n, Time: time.Minute} }
	for _, size := range []int64{0, 1, 100_000} {
		data := noise(int(size))
		must(t, h.Upload(t.Context(), bytes.NewReader(data), size, name, 0o600, upTo(size)))
		var got bytes.Buffer
		if err := h.Download(t.Context(), name, &got, upTo(size)); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d bytes: %d came, %v", size, got.Len(), err)
		}
	}
	if err := h.Download(t.Context(), name, io.Discard, upTo(99_999)); !errors.Is(err, &reason.Error{ID: reason.HostOutputTooLarge}) {
		t.Errorf("a file beyond the limit: %v", err)
	}
	if err := h.Download(t.Context(), dir+"/nothing", io.Discard, upTo(1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	// A file that grows while it is fetched is none of those that it was.
	grows := &cutting{to: io.Discard, left: 1, cut: func() {
		if err := os.WriteFile(name, noise(200_000)[100_000:], 0o600); err != nil {
			t.Error(err)
		}
	}}
	if err := h.Download(t.Context(), name, grows, upTo(1<<20)); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("a file that changes meanwhile: %v", err)
	}
	if err := h.Upload(t.Context(), bytes.NewReader(nil), 1, name, 0o600, upTo(1)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("less than what was to be sent: %v", err)
	}
	before, err := os.ReadFile(name)
	must(t, err)
	changes := &changing{data: noise(100_000)}
	if err := h.Upload(t.Context(), changes, 100_000, name, 0o600, upTo(1<<20)); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("what changes while it is sent: %v", err)
	}
	if after, err := os.ReadFile(name); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file is another after an upload that failed: %v", err)
	}
	if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) != 1 {
		t.Errorf("there is %q, %v", left, err)
	}
}

// changing is another one each time it is read.
type changing struct{ data []byte }

func (c *changing) ReadAt(p []byte, at int64) (int, error) {
	c.data[0]++
	return bytes.NewReader(c.data).ReadAt(p, at)
}
