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
		"nothing in it":                {"kubernetes:\n" + hosts, "kubernetes:\n  version: \"1.37\"\n" + hosts},
		"comments in it":               {"kubernetes: # ours\n  # version: 1.36\n" + hosts, "kubernetes: # ours\n  version: \"1.37\"\n  # version: 1.36\n" + hosts},
		"nothing in it, no line end":   {hosts + "kubernetes:", hosts + "kubernetes:\n  version: \"1.37\""},
		"nothing in it, CRLF":          {"kubernetes:\r\n" + hosts, "kubernetes:\r\n  version: \"1.37\"\r\n" + hosts},
		"null":                         {"kubernetes: ~ # later\n" + hosts, "kubernetes: {version: \"1.37\"} # later\n" + hosts},
		"an empty mapping":             {"kubernetes: {} # later\n" + hosts, "kubernetes: {version: \"1.37\"} # later\n" + hosts},
		"an empty mapping with blanks": {"kubernetes: { }\n" + hosts, "kubernetes: {version: \"1.37\" }\n" + hosts},
		"other keys in a line":         {"kubernetes: { allowEndOfLife: true }\n" + hosts, "kubernetes: { version: \"1.37\", allowEndOfLife: true }\n" + hosts},
	} {
		got, err := SetVersion([]byte(c.before), "1.37")
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if again, err := SetVersion(got, "1.37"); err != nil || string(again) != c.after {
			t.Errorf("%s, again: %v\n%s", name, err, again)
		}
	}
	for name, c := range map[string]struct{ before, want string }{
		"a list":         {"- x\n", "write by hand `kubernetes: {version: \"1.37\"}`"},
		"no inventory":   {"{", "inventory:1:1: "},
		"another kind":   {"# ours\nkubernetes: yes\n" + hosts, "write by hand `version: \"1.37\"` below kubernetes, in line 2"},
		"an end":         {hosts + "...\n", "write by hand `kubernetes: {version: \"1.37\"}`"},
		"a whole line":   {"{hosts: [{address: 10.0.0.10}]}\n", "write by hand `kubernetes: {version: \"1.37\"}`"},
		"null in a line": {"{kubernetes: , hosts: [{address: 10.0.0.10}]}\n", "write by hand `version: \"1.37\"` below kubernetes, in line 1"},
		"several lines":  {"kubernetes:\n  version: >-\n    1.36\n" + hosts, "write by hand `version: \"1.37\"` below kubernetes, in line 1"},
	} {
		if got, err := SetVersion([]byte(c.before), "1.37"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s became\n%s, %v", name, got, err)
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
