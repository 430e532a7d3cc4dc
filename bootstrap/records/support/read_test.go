package support

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func stream(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

func TestRead(t *testing.T) {
	hello := base64.StdEncoding.EncodeToString([]byte("hello\n"))
	for _, c := range []struct {
		name    string
		output  []byte
		want    []Entry
		problem string
	}{
		{"all of it", stream("kgpu-support=1", "df "+hello, "nvidia-smi "+hello, "failed ", "end=1"),
			[]Entry{{"df", []byte("hello\n")}, {"nvidia-smi", []byte("hello\n")}, {"failed", []byte{}}}, ""},
		{"cut off", stream("kgpu-support=1", "df "+hello, "ip aGV"), []Entry{{"df", []byte("hello\n")}}, "ends before its end"},
		{"end that is cut off", []byte("df " + hello + "\nend=1"), []Entry{{"df", []byte("hello\n")}}, "ends before its end"},
		{"names that lead elsewhere", stream("../../etc/passwd "+hello, "/etc/passwd "+hello, ".bashrc "+hello, "a/b "+hello, "facts.json "+hello, "facts "+hello, "end=1"), nil, "6 lines"},
		{"twice", stream("df "+hello, "df ", "end=1"), []Entry{{"df", []byte("hello\n")}}, "1 line not"},
		{"no base64", stream("df hello! 0", "end=1"), nil, "1 line not"},
		{"more than two words", stream("df "+hello+" 0", "df", "end=1"), nil, "2 lines"},
		{"nothing", nil, nil, "ends before its end"},
	} {
		got, err := Read(c.output)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.name, err, c.problem)
		}
	}
}

func TestReadTakesSoManyEntries(t *testing.T) {
	var b bytes.Buffer
	for i := range 5 * maxEntries {
		fmt.Fprintf(&b, "e%d \n", i)
	}
	b.WriteString("end=1\n")
	got, err := Read(b.Bytes())
	if len(got) != maxEntries || err == nil {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

// FuzzRead holds that no output makes a name that is none.
func FuzzRead(f *testing.F) {
	f.Add([]byte("kgpu-support=1\ndf aGVsbG8=\nend=1\n"))
	f.Add([]byte("../x aGVsbG8=\n"))
	f.Add([]byte("\x00\xff \n\n  \n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		entries, _ := Read(output)
		seen := map[string]bool{}
		for _, e := range entries {
			if !entryName.MatchString(e.Name) || strings.ContainsAny(e.Name, "/.\n") || seen[e.Name] {
				t.Errorf("%q", e.Name)
			}
			seen[e.Name] = true
		}
	})
}

// TestCapture holds that a host cannot fill the memory.
func TestCapture(t *testing.T) {
	ended := 0
	c := &Capture{Full: func() { ended++ }}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range MaxStream >> 20 {
		if n, err := c.Write(chunk); n != len(chunk) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if c.Err() != nil || ended != 0 {
		t.Errorf("%v, %d before it was full", c.Err(), ended)
	}
	for range 3 {
		if n, err := c.Write(chunk); n != 0 || !errors.Is(err, errFull) {
			t.Errorf("%d, %v", n, err)
		}
	}
	if len(c.Bytes()) != MaxStream || c.Err() == nil || ended != 1 {
		t.Errorf("%d bytes, %v, %d", len(c.Bytes()), c.Err(), ended)
	}
}
