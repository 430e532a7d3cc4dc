package access

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// fileFlags are kubectl's flags whose value names files, with how the value is read.
var fileFlags = map[string]struct{ list, keyed, manifests bool }{
	"-f": {list: true, manifests: true}, "-Rf": {list: true, manifests: true}, "--filename": {list: true, manifests: true}, "-k": {}, "--kustomize": {},
	"--from-file": {keyed: true}, "--from-env-file": {}, "--patch-file": {}, "--cert": {}, "--key": {},
	"-o": {keyed: true}, "--output": {keyed: true},
}

// valueFlags are those of kubectl's own flags that may stand before the command and have a value behind them.
var valueFlags = []string{"-n", "--namespace", "--context", "--cluster", "--user", "-s", "--server", "--as", "--as-group", "--request-timeout", "-v"}

// maxSent bounds what is sent along: no object may be larger than 1.5 MB.
const maxSent = 16 << 20

// withFiles are the arguments for a kubectl elsewhere, and a tar archive with the files and folders of this machine that they
// name; nil: they name none. What is not here stays as it is: URLs, standard input, files there.
func (k KubectlOptions) withFiles() (args []string, archive []byte, err error) {
	verb := k.verb()
	if verb == "cp" {
		return nil, nil, &reason.UsageError{Message: "kubectl cp would copy from and to the control plane, where kubectl runs: install kubectl on this machine, or pass it through: `kgpu kubectl -- exec -i POD -- tee FILE <FILE`"}
	}
	f := files{}
	f.tar = tar.NewWriter(&f.buffer)
	args = slices.Clone(k.Args)
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		if short := flag[:min(2, len(flag))]; (short == "-f" || short == "-k") && len(flag) > 2 { // -fFILE, perhaps with = in it
			flag, value, joined = short, args[i][2:], true
		}
		how, known := fileFlags[flag]
		if !known || flag == "-f" && verb == "logs" { // there it is --follow
			continue
		}
		if !joined {
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		if (flag == "-o" || flag == "--output") && !strings.Contains(value, "-file=") { // jsonpath-file=FILE and the like
			continue
		}
		if value = f.send(value, how.list, how.keyed, how.manifests); joined {
			value = flag + "=" + value
		}
		args[i] = value
	}
	if f.sent == 0 || f.err != nil {
		return args, nil, f.err
	}
	if err := f.tar.Close(); err != nil {
		return nil, nil, err
	}
	return args, f.buffer.Bytes(), nil
}

// verb is kubectl's command; empty: there is none.
func (k KubectlOptions) verb() string {
	for i := 0; i < len(k.Args); i++ {
		switch a := k.Args[i]; {
		case slices.Contains(valueFlags, a):
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// files collects what is sent along.
type files struct {
	buffer bytes.Buffer
	tar    *tar.Writer
	sent   int // files and folders that arguments named
	err    error
}

// send packs what the value of a flag names, and returns the value as it is there.
func (f *files) send(value string, list, keyed, manifests bool) string {
	names, key := []string{value}, ""
	if list {
		names = strings.Split(value, ",")
	}
	if before, after, ok := strings.Cut(value, "="); keyed && ok {
		names, key = []string{after}, before+"="
	}
	for i, name := range names {
		info, err := os.Stat(name)
		if err != nil || f.err != nil || name == "-" {
			continue
		}
		at := fmt.Sprint(f.sent)
		if base := filepath.Base(name); base != "." && base != ".." && base != "/" {
			at += "/" + base
		}
		f.sent++
		names[i] = at
		if !info.IsDir() {
			f.err = f.add(name, at)
			continue
		}
		if f.err = f.tar.WriteHeader(&tar.Header{Name: at, Mode: 0o700, Typeflag: tar.TypeDir}); f.err != nil {
			continue
		}
		f.err = filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || manifests && !slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(p)) {
				return err
			}
			rest, err := filepath.Rel(name, p)
			if err != nil {
				return err
			}
			if info, err := os.Stat(p); err != nil || !info.Mode().IsRegular() {
				return err
			}
			return f.add(p, path.Join(at, filepath.ToSlash(rest)))
		})
	}
	return key + strings.Join(names, ",")
}

// add packs a file, which may be a pipe.
func (f *files) add(name, at string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSent+1))
	if err != nil {
		return err
	}
	if f.buffer.Len()+len(text) > maxSent {
		return reason.Usagef("kubectl runs on the control plane, and more than %d MiB would have to be sent there with %s: name single files, or install kubectl on this machine", maxSent>>20, name)
	}
	err = f.tar.WriteHeader(&tar.Header{Name: at, Mode: 0o600, Size: int64(len(text))})
	if err == nil {
		_, err = f.tar.Write(text)
	}
	return err
}
