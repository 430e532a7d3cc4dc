package inventory

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// FuzzDecode: decoding never panics, problems lie within the file, what is accepted stays accepted, and can be added to
// and removed from.
func FuzzDecode(f *testing.F) {
	for _, path := range append(badFiles(f), goodFiles(f)...) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	o := testOptions()
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newDecoder("fuzz.yaml", o)
		inv := d.decode(data, o.Now)
		_, err := Decode("fuzz.yaml", data, o)
		if (err == nil) != (len(d.problems) == 0) {
			t.Fatalf("%v, %v", err, d.problems)
		}
		if err != nil {
			checkPositions(t, data, err)
			return
		}
		if again := inv.check(o.Now); len(again) > 0 {
			t.Errorf("an accepted inventory has problems: %v", again)
		}
		for _, h := range inv.Hosts {
			if h.Line < 1 || h.Line > newText(data).lines() || h.Address == "" || h.SSH.Port < 0 || h.SSH.Port > 65535 {
				t.Errorf("host %+v", h)
			}
		}
		for _, h := range inv.Hosts[:min(len(inv.Hosts), 20)] {
			if removed, err := RemoveHosts(data, []string{h.ID()}); err == nil && !bytes.ContainsRune(data, '[') && !containsInOrder(data, removed) { // a range may become two
				t.Errorf("RemoveHosts of %s made something up:\n%s\n%s", h.ID(), data, removed)
			}
		}
		if edited, err := AddHosts(data, []NewHost{{Address: "new.example"}}); err == nil {
			if !containsInOrder(edited, data) {
				t.Errorf("AddHosts lost something:\n%s\n%s", data, edited)
			}
			if removed, err := RemoveHosts(edited, []string{"new.example"}); err == nil && !containsInOrder(edited, removed) {
				t.Errorf("RemoveHosts made something up:\n%s\n%s", edited, removed)
			}
		}
	})
}

func checkPositions(t *testing.T, data []byte, err error) {
	var problems Errors
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("no problems in %v", err)
	}
	text := newText(data)
	for _, p := range problems {
		if p.Line < 1 || p.Line > max(1, text.lines()) {
			t.Fatalf("%q has %d lines: %s", data, text.lines(), p)
		}
		if said := p.String(); p.Message == "" || said != printable.Line(said) {
			t.Errorf("message %q", p)
		}
		// One column behind the line is where a value is missing.
		if width := len([]rune(text.line(p.Line))); p.Column < 1 || p.Column > width+1 {
			t.Fatalf("line %q has %d columns: %s", text.line(p.Line), width, p)
		}
	}
}

// containsInOrder reports whether all bytes of part are in whole, in their order.
func containsInOrder(whole, part []byte) bool {
	for _, b := range whole {
		if len(part) > 0 && part[0] == b {
			part = part[1:]
		}
	}
	return len(part) == 0
}
