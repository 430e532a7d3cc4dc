package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// TestInclude holds what is included against what ssh(1) does: for whom it is, in which order, and what is let be.
func TestInclude(t *testing.T) {
	t.Setenv("HOME", "/home/op")
	machine := fstest.MapFS{
		"home/op/.ssh/config": {Data: []byte("include conf.d/* ~/more nothing-there \"two words\" conf.d # a comment\n" +
			"Host gpu*  !gpu9\r\n\tInclude = inner\r\n\tUser late\nMatch host a?,b\n  Port 23 # why\n  IdentityFile \"/my key\"\nMATCH all\nUser\t=\tanybody\n#User x\nUser\n")},
		"home/op/.ssh/conf.d/20":        {Data: []byte("IdentityFile second\n")},
		"home/op/.ssh/conf.d/10":        {Data: []byte("IdentityFile first#1\n")},
		"home/op/.ssh/conf.d/folder/30": {Data: []byte("IdentityFile never\n")},
		"home/op/more":                  {Data: []byte("IdentityFile more")},
		"home/op/.ssh/two words":        {Data: []byte("IdentityFile words")},
		"home/op/.ssh/inner":            {Data: []byte("User inner\nHost *1\n HostName one.example\n")},
	}
	c, err := loadConfig(machine, "/home/op/.ssh/config")
	must(t, err)
	all := []string{"first#1", "second", "more", "words"}
	for alias, want := range map[string]string{
		"gpu1": "inner one.example ", "gpu2": "inner  ", "gpu9": "anybody  ", "a1": "anybody  23", "b": "anybody  23", "a": "anybody  ", "x1": "anybody  ",
	} {
		if got := strings.Join([]string{c.get(alias, "User"), c.get(alias, "hostname"), c.get(alias, "PORT")}, " "); got != want {
			t.Errorf("%s: %q, want %q", alias, got, want)
		}
		keys := all
		if strings.HasSuffix(want, "23") {
			keys = append(slices.Clip(all), "/my key")
		}
		if got := c.all(alias, "IdentityFile"); !slices.Equal(got, keys) {
			t.Errorf("%s: keys %q", alias, got)
		}
	}
}

// TestIncludeWithoutAnEnd holds that what a ssh_config leads to has an end: devices, files that include each other, too many and
// too long ones are refused.
func TestIncludeWithoutAnEnd(t *testing.T) {
	many := fstest.MapFS{
		"c": {Data: []byte("Include /d/*")}, "round": {Data: []byte("Include /round")}, "tree": {Data: []byte(strings.Repeat("Include /tree\n", 10))},
		"long": {Data: make([]byte, mostConfig+1)}, "longer": {Data: []byte("Include /half /half /half")}, "half": {Data: []byte("#" + strings.Repeat("x", mostConfig/2))},
		"device": {Data: []byte("Include /dev/*ull")}, "dev/full": {Mode: fs.ModeDevice | fs.ModeCharDevice}, "dev/other": {},
		"pattern": {Data: []byte("Include /[")},
	}
	for i := range mostIncluded + 1 {
		many[fmt.Sprint("d/", i)] = &fstest.MapFile{}
	}
	for path, want := range map[string]string{
		"/c": "more than 1000 files", "/round": "include each other", "/tree": "include each other", "/long": "longer than 4 MiB", "/longer": "longer than 4 MiB",
		"/device": "/dev/full is no regular file", "/pattern": "syntax error", "/nowhere": "not exist",
	} {
		_, err := loadConfig(many, path)
		if !errors.Is(err, &reason.Error{ID: reason.InventoryInvalid}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestIncludeOnThisMachine holds that real pipes and devices are found out before they are opened.
func TestIncludeOnThisMachine(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for included, want := range map[string]string{dir + "/p*": "/pipe is no regular file", "/dev/*ull": "/dev/full is no regular file"} {
		path := filepath.Join(dir, "config")
		writeFile(t, path, []byte("Include "+included+"\n"))
		if _, err := loadConfig(os.DirFS("/"), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
