package inventory

import (
	"strings"
	"testing"
)

func TestSetVersion(t *testing.T) {
	const hosts = "hosts: [{address: 10.0.0.10, role: control-plane}] # all\n"
	for name, c := range map[string]struct{ before, after string }{
		"none":              {hosts, hosts + "kubernetes: {version: \"1.37\"}\n"},
		"none, no line end": {strings.TrimSpace(hosts), hosts + "kubernetes: {version: \"1.37\"}\n"},
		"none, CRLF":        {"cluster: x\r\n" + hosts, "cluster: x\r\n" + hosts + "kubernetes: {version: \"1.37\"}\r\n"},
		"plain":             {"kubernetes:\n  version: 1.36.3 # proven\n" + hosts, "kubernetes:\n  version: \"1.37\" # proven\n" + hosts},
		"a number":          {"kubernetes: {version: 1.36}\n" + hosts, "kubernetes: {version: \"1.37\"}\n" + hosts},
		"quoted":            {"kubernetes: {allowEndOfLife: true, version: '1.36'}\n" + hosts, "kubernetes: {allowEndOfLife: true, version: \"1.37\"}\n" + hosts},
		"other keys": {"kubernetes:\n    # ours\n    allowEndOfLife: true\n" + hosts,
			"kubernetes:\n    # ours\n    version: \"1.37\"\n    allowEndOfLife: true\n" + hosts},
		"other keys in a line": {"kubernetes: { allowEndOfLife: true }\n" + hosts, "kubernetes: { version: \"1.37\", allowEndOfLife: true }\n" + hosts},
	} {
		got, err := SetVersion([]byte(c.before), "1.37")
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if again, err := SetVersion(got, "1.37"); err != nil || string(again) != c.after {
			t.Errorf("%s, again: %v\n%s", name, err, again)
		}
	}
	for name, before := range map[string]string{
		"a list":        "- x\n",
		"no inventory":  "{",
		"another kind":  "kubernetes: yes\n" + hosts,
		"empty":         "kubernetes: {}\n" + hosts,
		"an end":        hosts + "...\n",
		"a whole line":  "{hosts: [{address: 10.0.0.10}]}\n",
		"several lines": "kubernetes:\n  version: >-\n    1.36\n" + hosts,
	} {
		if got, err := SetVersion([]byte(before), "1.37"); err == nil {
			t.Errorf("%s became\n%s", name, got)
		}
	}
}

// The virtual address comes into the file in the same way.
func TestSetVirtualIP(t *testing.T) {
	const hosts = "hosts: [{address: 10.0.0.10, role: control-plane}]\n"
	for before, after := range map[string]string{
		hosts: hosts + "kubernetes: {virtualIP: \"10.0.0.100\"}\n",
		"kubernetes: {version: 1.36} # ours\n" + hosts:         "kubernetes: {virtualIP: \"10.0.0.100\", version: 1.36} # ours\n" + hosts,
		"kubernetes:\n  virtualIP: 10.0.0.99 # free\n" + hosts: "kubernetes:\n  virtualIP: \"10.0.0.100\" # free\n" + hosts,
	} {
		got, err := SetVirtualIP([]byte(before), "10.0.0.100")
		if err != nil || string(got) != after {
			t.Errorf("%q: %v\n%s", before, err, got)
		}
	}
}
