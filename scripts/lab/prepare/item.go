package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"kgpu.dev/kgpu/scripts/lab/problem"
)

// items makes things that are cached by their inputs and reports one line for each.
type items struct {
	out      io.Writer
	began    time.Time
	made     int
	kept     int
	lookOnly bool // do answers errStale where it would make something
}

var errStale = errors.New("not up to date")

func newItems(out io.Writer) *items { return &items{out: out, began: time.Now()} }

// item is one cached thing. Its stamp, beside it, holds the hash of its inputs and is written last.
type item struct {
	name   string // for the progress line
	path   string // the file or folder that is made
	inputs []any  // whatever decides the outcome
	files  []string
	make   func(ctx context.Context) error
}

func stampOf(path string) string { return path + ".stamp" }

func (i item) key() (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(i.inputs); err != nil {
		return "", err
	}
	for _, f := range i.files {
		text, err := sources.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", f, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fresh says whether the item's stamp matches its inputs.
func (i item) fresh() bool {
	key, err := i.key()
	if err != nil {
		return false
	}
	stamp, err := os.ReadFile(stampOf(i.path))
	return err == nil && string(stamp) == key
}

func (s *items) do(ctx context.Context, i item) error {
	if i.fresh() {
		s.kept++
		s.report(i.name, "cached")
		return nil
	}
	if s.lookOnly {
		return fmt.Errorf("%s: %w", i.name, errStale)
	}
	key, err := i.key()
	if err != nil {
		return fmt.Errorf("%s: %w", i.name, err)
	}
	if err := os.MkdirAll(filepath.Dir(i.path), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(stampOf(i.path)); err != nil {
		return err
	}
	s.report(i.name, "…")
	start := time.Now()
	if err := i.make(ctx); err != nil {
		return &problem.Problem{Step: "prepare " + i.name, Reason: "LAB_PREPARE",
			Advice: "Run `lab prepare` again once the cause is gone: what is made already is kept.", Err: err}
	}
	s.made++
	s.report(i.name, fmt.Sprintf("%.1f s", time.Since(start).Seconds()))
	return os.WriteFile(stampOf(i.path), []byte(key), 0o644)
}

func (s *items) report(name, what string) {
	fmt.Fprintf(s.out, "%6.1f s  %-44s %s\n", time.Since(s.began).Seconds(), name, what)
}

func (s *items) total() {
	s.report("prepared", fmt.Sprintf("%d made, %d cached", s.made, s.kept))
}
