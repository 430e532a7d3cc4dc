package inventory

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddHosts(t *testing.T) {
	one := []NewHost{{Address: "10.0.0.12"}}
	two := []NewHost{{Address: "10.0.0.12"}, {Address: "10.0.0.13"}}
	full := []NewHost{{Address: "10.0.0.[12-13]", Name: "gpu[1-2]", User: "ubuntu", Port: 2222}}
	way := []NewHost{{Address: "10.0.0.12", User: "ubuntu", Port: 2222}, {Address: "10.0.0.13", User: "07"}, {Address: "10.0.0.14", Port: 22}}
	for _, c := range []struct {
		name   string
		before string
		hosts  []NewHost
		after  string // «» is around what must be new
	}{
		{"block list", "hosts:\n  - address: a\n", one, "hosts:\n  - address: a\n«  - address: 10.0.0.12\n»"},
		{"two hosts", "hosts:\n  - address: a\n", two, "hosts:\n  - address: a\n«  - address: 10.0.0.12\n  - address: 10.0.0.13\n»"},
		{"no final newline", "hosts:\n  - address: a", two, "hosts:\n  - address: a«\n  - address: 10.0.0.12\n  - address: 10.0.0.13»"},
		{"dashes at the margin", "hosts:\n- address: a\n  role: worker\n", full, "hosts:\n- address: a\n  role: worker\n" +
			"«- address: 10.0.0.[12-13]\n  name: gpu[1-2]\n  ssh: {user: ubuntu, port: 2222}\n»"},
		{"wide dashes", "hosts:\n    -   address: a\n        role: worker\n", full, "hosts:\n    -   address: a\n        role: worker\n" +
			"«    -   address: 10.0.0.[12-13]\n        name: gpu[1-2]\n        ssh: {user: ubuntu, port: 2222}\n»"},
		{"dash alone", "hosts:\n  -\n    address: a\n", one, "hosts:\n  -\n    address: a\n«  - address: 10.0.0.12\n»"},
		{"carriage returns", "hosts:\r\n  - address: a\r\ncluster: x\r\n", one, "hosts:\r\n  - address: a\r\n«  - address: 10.0.0.12\r\n»cluster: x\r\n"},
		{"carriage returns, no final one", "hosts:\r\n  - address: a", one, "hosts:\r\n  - address: a«\r\n  - address: 10.0.0.12»"},
		{"byte order mark", "\ufeffhosts:\n  - address: a\n", one, "\ufeffhosts:\n  - address: a\n«  - address: 10.0.0.12\n»"},
		{"keys and comments behind", "hosts:\n  - address: a # first\n\n# the network\nnetwork: weave\n", one,
			"hosts:\n  - address: a # first\n«  - address: 10.0.0.12\n»\n# the network\nnetwork: weave\n"},
		{"comments of the list", "hosts:\n  - address: a\n    # role: worker\n\n  # - address: b\n\n# end\n", one,
			"hosts:\n  - address: a\n    # role: worker\n\n  # - address: b\n«  - address: 10.0.0.12\n»\n# end\n"},
		{"comment behind dashes at the margin", "hosts:\n- address: a\n# the network\nnetwork: weave\n", one,
			"hosts:\n- address: a\n«- address: 10.0.0.12\n»# the network\nnetwork: weave\n"},
		{"end of document", "hosts:\n  - address: a\n...\n", one, "hosts:\n  - address: a\n«  - address: 10.0.0.12\n»...\n"},
		{"quotes", "hosts:\n  - 'address': 'a'\n    name: b\n", one, "hosts:\n  - 'address': 'a'\n    name: b\n«  - 'address': '10.0.0.12'\n»"},
		{"double quotes", "hosts:\n  - name: b\n    address: \"a\"\n", one, "hosts:\n  - name: b\n    address: \"a\"\n«  - address: \"10.0.0.12\"\n»"},
		{"value that needs quotes", "hosts:\n  - address: a\n", []NewHost{{Address: "[1-2]", Name: "07", User: "a b"}},
			"hosts:\n  - address: a\n«  - address: \"[1-2]\"\n    name: \"07\"\n    ssh: {user: a b}\n»"},
		{"last value is a block of text", "hosts:\n  - address: a\n    ssh:\n      hostKey: |\n        ssh-ed25519 AAAA\n        # no comment\n\nswap: refuse\n", one,
			"hosts:\n  - address: a\n    ssh:\n      hostKey: |\n        ssh-ed25519 AAAA\n        # no comment\n«  - address: 10.0.0.12\n»\nswap: refuse\n"},
		{"the way of SSH", "hosts:\n  - address: a\n", way, "hosts:\n  - address: a\n" +
			"«  - address: 10.0.0.12\n    ssh: {user: ubuntu, port: 2222}\n  - address: 10.0.0.13\n    ssh: {user: \"07\"}\n  - address: 10.0.0.14\n    ssh: {port: 22}\n»"},
		{"the way of SSH in JSON", "{\"hosts\": [{\"address\": \"a\"}]}", way[:1],
			"{\"hosts\": [{\"address\": \"a\"}«, {\"address\": \"10.0.0.12\", \"ssh\": {\"user\": \"ubuntu\", \"port\": 2222}}»]}"},
		{"entries in braces", "hosts:\n  - {address: a, role: worker}\n", full, "hosts:\n  - {address: a, role: worker}\n" +
			"«  - {address: \"10.0.0.[12-13]\", name: \"gpu[1-2]\", ssh: {user: ubuntu, port: 2222}}\n»"},
		{"entries in spaced braces", "hosts:\n  - { address: a }\n", one, "hosts:\n  - { address: a }\n«  - { address: 10.0.0.12 }\n»"},
		{"flow list", "hosts: [{address: a}]\n", two, "hosts: [{address: a}«, {address: 10.0.0.12}, {address: 10.0.0.13}»]\n"},
		{"flow list with a comma", "hosts: [{address: a}, ]\n", one, "hosts: [{address: a}«, {address: 10.0.0.12}», ]\n"},
		{"flow list over lines", "hosts: [\n  {address: a}\n]\n", two, "hosts: [\n  {address: a}«,\n  {address: 10.0.0.12},\n  {address: 10.0.0.13}»\n]\n"},
		{"flow list over lines with commas", "hosts: [\n  {address: a},\n]\n", two, "hosts: [\n  {address: a},«\n  {address: 10.0.0.12},\n  {address: 10.0.0.13},»\n]\n"},
		{"flow list with comments", "hosts: [\n  {address: a} # the ] first\n]\n", one, "hosts: [\n  {address: a}«,» # the ] first«\n  {address: 10.0.0.12}»\n]\n"},
		{"flow list with commas and comments", "hosts: [\n  {address: a}, # first\n  # more\n]\n", one, "hosts: [\n  {address: a}, # first«\n  {address: 10.0.0.12},»\n  # more\n]\n"},
		{"flow list closed behind its last entry", "hosts: [\n  {address: a},\n  {address: b}]\n", one, "hosts: [\n  {address: a},\n  {address: b}«,\n  {address: 10.0.0.12}»]\n"},
		{"JSON", "{\n  \"hosts\": [\n    {\n      \"address\": \"a\",\n      \"name\": \"x]}\\\"\"\n    }\n  ]\n}\n", one,
			"{\n  \"hosts\": [\n    {\n      \"address\": \"a\",\n      \"name\": \"x]}\\\"\"\n    }«,\n    {\"address\": \"10.0.0.12\"}»\n  ]\n}\n"},
		{"quotes inside words", "hosts: [{address: a, ssh: {key: it's, user: 'o''b}'}}]\n", one, "hosts: [{address: a, ssh: {key: it's, user: 'o''b}'}}«, {address: 10.0.0.12}»]\n"},
		{"other letters", "hosts: [{address: ä}, {address: ö}]\n", one, "hosts: [{address: ä}, {address: ö}«, {address: 10.0.0.12}»]\n"},
		{"nothing to add", "hosts:\n  - address: a\n", nil, "hosts:\n  - address: a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := AddHosts([]byte(c.before), c.hosts)
			must(t, err)
			if want := strings.NewReplacer("«", "", "»", "").Replace(c.after); string(got) != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if rest := withoutNew(c.after); rest != c.before {
				t.Errorf("the case itself changes more than it marks as new: %q, %q", rest, c.before)
			}
		})
	}
}

// withoutNew drops what is between « and ».
func withoutNew(s string) string {
	var b strings.Builder
	for s != "" {
		before, rest, _ := strings.Cut(s, "«")
		b.WriteString(before)
		_, s, _ = strings.Cut(rest, "»")
	}
	return b.String()
}

func TestAddHostsErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":           "hosts: [",
		"no hosts":          "cluster: lab\n",
		"empty list":        "hosts: []\n",
		"no list":           "hosts: a\n",
		"no value":          "hosts:\n",
		"aliases":           "a: &a {address: b}\nhosts: [*a]\n",
		"list at the top":   "- hosts\n",
		"text kept at ends": "hosts:\n  - address: a\n    ssh:\n      key: |+\n        x\n\n\n",
	} {
		if got, err := AddHosts([]byte(text), []NewHost{{Address: "10.0.0.12"}}); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Every good inventory can be added to: it stays good, has the new host at its end, and all of its bytes are still there in order.
func TestAddHostsToGoodFiles(t *testing.T) {
	for _, path := range goodFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			must(t, err)
			before, err := Decode(path, data, testOptions())
			must(t, err)
			edited, err := AddHosts(data, []NewHost{{Address: "172.30.0.1"}})
			must(t, err)
			if !oneInsertion(data, edited) {
				t.Errorf("more than one place changed:\n%s", edited)
			}
			after, err := Decode(path, edited, testOptions())
			must(t, err)
			if n := len(before.Hosts); len(after.Hosts) != n+1 || after.Hosts[n].Address != "172.30.0.1" || after.Hosts[n].Role != Worker {
				t.Errorf("hosts: %+v", after.Hosts)
			}
		})
	}
}

// oneInsertion reports whether after is before with something put in at one place.
func oneInsertion(before, after []byte) bool {
	i := 0
	for i < len(before) && before[i] == after[i] {
		i++
	}
	return bytes.HasSuffix(after, before[i:])
}
