package inventory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "inventory.yaml")
	text := "ssh: {key: keys/id, passphrase: file:secret}\nhosts:\n  - address: 10.0.0.10\n    role: control-plane\n"
	must(t, os.WriteFile(path, []byte(text), 0o600))
	inv, err := Load(path, testOptions())
	must(t, err)
	h := inv.Hosts[0]
	if inv.Path != path || h.SSH.Key != filepath.Join(dir, "keys/id") || h.SSH.Passphrase.String() != "file:"+filepath.Join(dir, "secret") {
		t.Errorf("%s: paths do not start at the inventory: %+v", inv.Path, h.SSH)
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), testOptions())
	if !errors.Is(err, fs.ErrNotExist) || reason.ExitStatus(err) != reason.Lookup(reason.InventoryInvalid).Exit {
		t.Errorf("%v, exit status %d", err, reason.ExitStatus(err))
	}
}

// A version is in support on its last day, and not on the next one.
func TestSupportEnds(t *testing.T) {
	text := []byte("kubernetes: {version: \"1.35\"}\nhosts: [{address: 10.0.0.10, role: control-plane}]\n")
	o := testOptions()
	o.Now = time.Date(2027, 2, 28, 20, 0, 0, 0, time.UTC)
	if _, err := Decode("x", text, o); err != nil {
		t.Error(err)
	}
	o.Now = o.Now.AddDate(0, 0, 1)
	if _, err := Decode("x", text, o); err == nil || !strings.Contains(err.Error(), "choose 1.37 or 1.36,") {
		t.Error(err)
	}
	o.Now = o.Now.AddDate(10, 0, 0)
	if _, err := Decode("x", text, o); err == nil || !strings.Contains(err.Error(), "choose a newer kgpu,") {
		t.Error(err)
	}
}

func TestHomeIsNotSet(t *testing.T) {
	o := testOptions()
	o.Env = func(string) (string, bool) { return "", false }
	if _, err := Decode("x", []byte("hosts: [{address: 10.0.0.10, role: control-plane}]\n"), o); err != nil {
		t.Error(err)
	}
	if _, err := Decode("x", []byte("ssh: {key: ~/id}\nhosts: [{address: 10.0.0.10, role: control-plane}]\n"), o); err == nil || !strings.Contains(err.Error(), "HOME is not set") {
		t.Error(err)
	}
}

// What is wrong with an edited text is told without a place in the file, which is its user's; what was wrong before, with it.
func TestDecodeEdited(t *testing.T) {
	const good = "hosts:\n- {address: 10.0.0.10, role: control-plane}\n"
	for _, c := range []struct{ original, edited, usage, invalid string }{
		{good, good + "kubernetes: {virtualIP: 10.0.0.9}\n", "", ""},
		{good, good + "kubernetes: {virtualIP: 10.0.0.10}\n", "kubernetes.virtualIP: 10.0.0.10 is the address of a host, at hosts[0]: name one that nobody has", ""},
		{good, good + "- {address: 10.0.0.11, rule: worker}\n", "unknown key \"rule\" (did you mean \"role\"?)", ""},
		{"kubernetes: {version: 1}\n" + good, good + "kubernetes: {virtualIP: foo}\n", "", "inventory.yaml:1:23: kubernetes.version: "},
	} {
		_, err := DecodeEdited("inventory.yaml", []byte(c.original), []byte(c.edited))
		usage, said := (*reason.UsageError)(nil), ""
		if errors.As(err, &usage) {
			said = err.Error()
		}
		if said != c.usage || errors.Is(err, &reason.Error{ID: reason.InventoryInvalid}) != (c.invalid != "") || err != nil && !strings.Contains(err.Error(), c.invalid) {
			t.Errorf("%q: %v", c.edited, err)
		}
	}
}

func TestSecretResolve(t *testing.T) {
	getenv := func(name string) (string, bool) {
		v, ok := map[string]string{"SET": "hunter2", "EMPTY": ""}[name]
		return v, ok
	}
	readFile := func(path string) ([]byte, error) {
		switch path {
		case "/secret":
			return []byte("hunter2\n"), nil
		case "/dos":
			return []byte("hunter2\r\n"), nil
		case "/two":
			return []byte("hunter2\n\n"), nil
		case "/empty":
			return []byte("\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	for ref, want := range map[string]string{
		"${SET}": "hunter2", "file:/secret": "hunter2", "file:/dos": "hunter2", "file:/two": "hunter2\n",
		"${EMPTY}": "", "${NOT_SET}": "", "file:/none": "", "file:/empty": "",
	} {
		s, err := ParseSecret(ref)
		if err != nil || s.IsZero() || s.String() != ref {
			t.Fatalf("%s: %q, %v", ref, s, err)
		}
		got, err := s.Resolve(getenv, readFile)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
		if err != nil && (reason.ExitStatus(err) != reason.Lookup(reason.SecretMissing).Exit || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := (Secret{}).Resolve(getenv, readFile); err == nil {
		t.Error("no reference was resolved")
	}
	for _, text := range []string{"", "hunter2", "${}", "${A}x", "$SET", "file:", "${A B}"} {
		if _, err := ParseSecret(text); err == nil || text != "" && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseSecret(%q): %v", text, err)
		}
	}
}

func TestExpandRange(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1":            "10.0.0.1",
		"10.0.0.[11-13]":      "10.0.0.11 10.0.0.12 10.0.0.13",
		"gpu[08-11].lab":      "gpu08.lab gpu09.lab gpu10.lab gpu11.lab",
		"gpu[8-11]":           "gpu8 gpu9 gpu10 gpu11",
		"n[0-2]":              "n0 n1 n2",
		"n[2,4,7-9]":          "n2 n4 n7 n8 n9",
		"n[2, 4]":             "n2 n4",
		"n[001,01,1]":         "n001 n01 n1",
		"n[5-5]":              "n5",
		"n[]":                 "error",
		"n[1-]":               "error",
		"n[-1]":               "error",
		"n[3-1]":              "error",
		"n[1,1]":              "error",
		"n[1-3,2]":            "error",
		"n[1":                 "error",
		"n1]":                 "error",
		"n[[1]]":              "error",
		"n[1][2]":             "error",
		"n[1-99999]":          "error",
		"n[9999999999]":       "error",
		"n[01-1]":             "error",
		"n[1-4000,4001-9000]": "error",
	} {
		got, err := ExpandRange(text)
		if err != nil {
			got = []string{"error"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("ExpandRange(%q) = %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestControlPlanesKeepTheFilesOrder(t *testing.T) {
	inv := &Inventory{Hosts: []Host{{Address: "w1", Role: Worker}, {Address: "b", Role: ControlPlane}, {Address: "w2", Role: Worker}, {Address: "a", Role: ControlPlane}}}
	var got []string
	for _, h := range inv.ControlPlanes() {
		got = append(got, h.ID())
	}
	if want := []string{"b", "a"}; !slices.Equal(got, want) || len(inv.Hosts) != 4 {
		t.Errorf("control planes %q, want %q, of %d hosts", got, want, len(inv.Hosts))
	}
}
