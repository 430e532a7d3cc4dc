package run

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/graph"
)

func TestBundle(t *testing.T) {
	e := &Engine{By: "me\t@\nhere", Lib: []byte("lib"), Script: func(name string) ([]byte, error) { return []byte("script " + name), nil }}
	s := step("a", "os/x", "os-x")
	s.Timeout = 1500 * time.Millisecond
	s.Input = graph.Input{
		Values: map[string]string{"b": "2", "a": "1"},
		Files:  map[string]graph.File{"/etc/y/z": {Mode: 0o644, Content: []byte("zz")}, "/etc/x": {Mode: 0o600}},
	}
	p, err := e.payloadOf(s, nil)
	must(t, err)
	packed := e.bundle("r-1", 0, []payload{p})
	for range 20 {
		if !bytes.Equal(packed, e.bundle("r-1", 0, []payload{p})) {
			t.Fatal("the same payloads made other bytes")
		}
	}
	content := map[string]string{}
	var names []string
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		want := int64(0o600)
		if h.Typeflag == tar.TypeDir {
			want = 0o700
		} else if h.Name == "r-1/steps/001/files/etc/y/z" {
			want = 0o644
		}
		if h.Mode != want || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: mode %o, owner %d:%d", h.Name, h.Mode, h.Uid, h.Gid)
		}
		names, content[h.Name] = append(names, h.Name), string(text)
	}
	if want := []string{
		"r-1/", "r-1/by", "r-1/follow.sh", "r-1/lib.sh", "r-1/lock-timeout", "r-1/runner.sh", "r-1/start.sh", "r-1/steps/", "r-1/steps/001/",
		"r-1/steps/001/files/", "r-1/steps/001/files/etc/", "r-1/steps/001/files/etc/x", "r-1/steps/001/files/etc/y/", "r-1/steps/001/files/etc/y/z",
		"r-1/steps/001/id", "r-1/steps/001/script.sh", "r-1/steps/001/timeout",
		"r-1/steps/001/values/", "r-1/steps/001/values/a", "r-1/steps/001/values/b",
	}; !slices.Equal(names, want) {
		t.Errorf("entries are %q", names)
	}
	for name, want := range map[string]string{
		"by": "me @ here\n", "lock-timeout": "1800\n", "lib.sh": "lib", "steps/001/id": "os/x\n", "steps/001/timeout": "2\n",
		"steps/001/script.sh": "script os-x", "steps/001/values/b": "2", "steps/001/files/etc/y/z": "zz",
	} {
		if got := content["r-1/"+name]; got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestParcelRefuses(t *testing.T) {
	e := &Engine{Script: func(name string) ([]byte, error) {
		if name == "missing" {
			return nil, errors.New("no such script")
		}
		return nil, nil
	}}
	for name, change := range map[string]func(*graph.Step){
		"value with a slash": func(s *graph.Step) { s.Input.Values = map[string]string{"../x": ""} },
		"value without name": func(s *graph.Step) { s.Input.Values = map[string]string{"": ""} },
		"value dot dot":      func(s *graph.Step) { s.Input.Values = map[string]string{"..": ""} },
		"relative file":      func(s *graph.Step) { s.Input.Files = map[string]graph.File{"etc/x": {}} },
		"file upwards":       func(s *graph.Step) { s.Input.Files = map[string]graph.File{"/etc/../../x": {}} },
		"script":             func(s *graph.Step) { s.Script = "missing" },
	} {
		s := step("a", "x", "x")
		change(s)
		if _, err := e.payloadOf(s, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
