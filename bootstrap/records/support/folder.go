package support

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxFile is how many bytes a bundle takes of one file of this machine.
const MaxFile = 4 << 20

// localFile is one below a folder.
type localFile struct {
	name string // path below the folder, with slashes
	info fs.FileInfo
}

// ReadFolder reads the files below a folder of this machine that are not empty, as far as room goes, in bytes, which becomes
// less by that: those in the folder itself first, then the ones that were written last. Of a file that is too long it takes
// the beginning and the end. left says what is not there, and why.
func ReadFolder(folder string, room *int) (entries []Entry, left []string) {
	files, err := filesBelow(folder)
	if err != nil {
		left = append(left, err.Error())
	}
	for _, f := range files {
		content, err := readEnds(filepath.Join(folder, filepath.FromSlash(f.name)), min(MaxFile, *room))
		if errors.Is(err, fs.ErrNotExist) { // since
			continue
		}
		if err != nil {
			left = append(left, err.Error())
			continue
		}
		if missing := f.info.Size() - int64(len(content)); missing > 0 {
			left = append(left, fmt.Sprintf("%s: %d of %d bytes are left out", f.name, missing, f.info.Size()))
		}
		if len(content) > 0 {
			*room -= len(content)
			entries = append(entries, Entry{f.name, content})
		}
	}
	return entries, left
}

// filesBelow lists the regular files below a folder, in the order in which they are wanted. There may be some in spite of an
// error.
func filesBelow(folder string) (files []localFile, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files = append(files, localFile{filepath.ToSlash(name), info})
		return err
	})
	slices.SortStableFunc(files, func(a, b localFile) int {
		return cmp.Or(cmp.Compare(min(1, strings.Count(a.name, "/")), min(1, strings.Count(b.name, "/"))), b.info.ModTime().Compare(a.info.ModTime()))
	})
	return files, err
}

// readEnds reads so many bytes of a file at most: of a longer one, whole lines from its beginning and, mostly, from its end.
func readEnds(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() <= int64(most) {
		return io.ReadAll(io.LimitReader(f, int64(most)))
	}
	begin, end := make([]byte, most/4), make([]byte, most-most/4)
	if _, err := f.ReadAt(begin, 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil {
		return nil, err
	}
	begin = begin[:bytes.LastIndexByte(begin, '\n')+1]
	return append(begin, end[bytes.IndexByte(end, '\n')+1:]...), nil
}
