package inventory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRemoveHosts(t *testing.T) {
	b := []string{"b"}
	for _, c := range []struct {
		name  string
		text  string // «» is around what must go, ‹› around what comes in its place
		hosts []string
	}{
		{"the last", "hosts:\n  - address: a\n«  - address: b\n»", b},
		{"the first", "hosts:\n«  - address: b\n»  - address: a\n", b},
		{"in between", "hosts:\n  - address: a\n«  - address: b\n    role: worker\n»  - address: c\n", b},
		{"by its name", "hosts:\n  - address: a\n«  - {address: x, name: b}\n»", b},
		{"two", "hosts:\n«  - address: b\n»  - address: a\n«  - address: c\n»", []string{"c", "b"}},
		{"no final line end", "hosts:\n  - address: a«\n  - address: b»", b},
		{"carriage returns", "hosts:\r\n  - address: a\r\n«  - address: b\r\n»cluster: x\r\n", b},
		{"carriage returns, no final one", "hosts:\r\n  - address: a«\r\n  - address: b»", b},
		{"byte order mark", "\ufeffhosts:\n«  - address: b\n»  - address: a\n", b},
		{"dashes at the margin", "hosts:\n- address: a\n«- address: b\n  role: worker\n»# the network\nnetwork: weave\n", b},
		{"dash alone", "hosts:\n  - address: a\n«  -\n    # in a rack\n    address: b\n»  - address: c\n", b},
		{"comments on its lines, above and below", "hosts:\n  - address: a # first\n«  # its fan is loud\n  # and old\n  - address: b # second\n    # role: worker\n»  # the third\n  - address: c\n", b},
		{"comments of others", "hosts: # all\n  - address: a\n    # of a\n«  - address: b\n»\n  # of nobody\n\n# end\n", b},
		{"entries that are commented out", "hosts:\n  - address: a\n  # - address: x\n  #   role: worker\n«  - address: b\n»  # - address: y\n  - address: c\n", b},
		{"blank lines between", "hosts:\n  - address: a\n\n«  - address: b\n\n»  - address: c\n", b},
		{"blank line above the last", "hosts:\n  - address: a\n«\n  - address: b\n»", b},
		{"blank line below the first", "hosts:\n«  - address: b\n\n»  - address: a\n", b},
		{"blank line below only", "hosts:\n  - address: a\n«  - address: b\n»\n  - address: c\n", b},
		{"keys behind", "hosts:\n  - address: a\n«  - address: b\n»\n# the network\nnetwork: weave\n", b},
		{"text that looks like comments", "hosts:\n  - address: a\n«  - address: b\n    ssh:\n      hostKey: |\n        ssh-ed25519 AAAA\n        # no comment\n»\nswap: refuse\n", b},
		{"end of document", "hosts:\n  - address: a\n«  - address: b\n»...\n", b},
		{"braces over lines", "hosts:\n  - {address: a}\n«  - {address: b,\n     role: worker}\n»  - {address: c}\n", b},
		{"range: the first", "hosts:\n  - address: 10.0.0.«[11-14]»‹[12-14]›\n", []string{"10.0.0.11"}},
		{"range: in between", "hosts:\n  - address: 10.0.0.«[11-14]»‹[11-12,14]› # four\n    name: gpu«[1-4]»‹[1-2,4]›\n    labels: {a: b}\n", []string{"gpu3"}},
		{"range: one is left", "hosts:\n  - address: gpu«[01-02,7].lab»‹01.lab›\n", []string{"gpu7.lab", "gpu02.lab"}},
		{"range: its parts stay", "hosts:\n  - address: gpu[09-11,13«-14»,20]\n", []string{"gpu14"}},
		{"range: all of it", "hosts:\n  - address: a\n«  - address: 10.0.0.[11-12]\n    name: gpu[1-2]\n»", []string{"gpu2", "10.0.0.11"}},
		{"range in quotes", "hosts:\n  - {\"address\": '10.0.0.«[1-2]»‹2›', name: \"w«[1-2]»‹2›\", privateAddress: '10.1.0.«[1-2]»‹2›'}\n", []string{"w1"}},
		{"range that needs quotes", "hosts:\n  - address: a«[1,2,3]»‹[1,3]›\n    name: \"«[1-3]»‹[1,3]›\"\n", []string{"2"}},
		{"flow list: the last", "hosts: [{address: a}«, {address: b}»]\n", b},
		{"flow list: the first", "hosts: [«{address: b}, »{address: a}]\n", b},
		{"flow list: in between", "hosts: [{address: a}, «{address: b}, »{address: c}]\n", b},
		{"flow list with a comma", "hosts: [{address: a},« {address: b},» ]\n", b},
		{"flow list over lines", "hosts: [\n  {address: a}«,»\n«  {address: b}\n»]\n", b},
		{"flow list over lines with commas", "hosts: [\n  {address: a},\n«  {address: b},\n»  {address: c},\n]\n", b},
		{"flow list with comments", "hosts: [\n  {address: a}«,» # the , first\n«  # the second\n  {address: b} # is loud\n»  # more\n]\n", b},
		{"flow list closed behind its last entry", "hosts: [\n  {address: a}«,» # first\n«  {address: b}»]\n", b},
		{"JSON", "{\n  \"hosts\": [\n    {\n      \"address\": \"a\",\n      \"name\": \"x\"\n    }«,»\n«    {\n      \"address\": \"b\"\n    }\n»  ]\n}\n", b},
		{"not there", "hosts:\n  - address: a\n", b},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := bothSides(c.text)
			got, err := RemoveHosts([]byte(before), c.hosts)
			if err != nil {
				t.Fatalf("%v\n%s", err, before)
			}
			if string(got) != after {
				t.Errorf("got:\n%s\nwant:\n%s", got, after)
			}
			if again, err := RemoveHosts(got, c.hosts); err != nil || !bytes.Equal(again, got) {
				t.Errorf("once more: %v\n%s", err, again)
			}
		})
	}
}

// bothSides is a text with what is between « and », and with what is between ‹ and › instead.
func bothSides(s string) (before, after string) {
	cut := func(s, open, end string) string {
		for {
			head, rest, found := strings.Cut(s, open)
			if !found {
				return s
			}
			_, tail, _ := strings.Cut(rest, end)
			s = head + tail
		}
	}
	return strings.NewReplacer("«", "", "»", "").Replace(cut(s, "‹", "›")), strings.NewReplacer("‹", "", "›", "").Replace(cut(s, "«", "»"))
}

func TestRemoveHostsErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":         "hosts: [",
		"no hosts":        "cluster: lab\n",
		"the only host":   "hosts:\n  - address: b\n",
		"the only ones":   "hosts: [{address: b}, {name: b, address: x}]\n",
		"two words of it": "hosts:\n  - address: >-\n      10.0.0.[1-2]\n    name: w[1-2]\n",
	} {
		hosts := []string{"b", "w1"}
		if got, err := RemoveHosts([]byte(text), hosts); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What was added to a good file goes again, and leaves the inventory that was there.
func TestRemoveWhatWasAdded(t *testing.T) {
	for _, path := range goodFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			must(t, err)
			before, err := Decode(path, data, testOptions())
			must(t, err)
			added, err := AddHosts(data, []NewHost{{Address: "172.30.0.1"}, {Address: "172.30.0.[2-4]", Name: "new[2-4]"}})
			must(t, err)
			for _, some := range [][]string{{"172.30.0.1", "172.30.0.2", "172.30.0.3", "172.30.0.4"}, {"new3", "new2", "new4", "172.30.0.1"}} {
				same(t, path, before, added, some)
			}
			left := added
			for _, one := range []string{"new3", "172.30.0.1", "new2", "new4"} {
				if left, err = RemoveHosts(left, []string{one}); err != nil {
					t.Fatal(err)
				}
			}
			same(t, path, before, left, nil)
		})
	}
}

// same wants a text without some hosts to say what before says.
func same(t *testing.T, path string, before *Inventory, text []byte, without []string) {
	t.Helper()
	edited, err := RemoveHosts(text, without)
	must(t, err)
	after, err := Decode(path, edited, testOptions())
	if err != nil {
		t.Fatalf("%v\n%s", err, edited)
	}
	if !reflect.DeepEqual(hostsOf(before), hostsOf(after)) {
		t.Errorf("%+v, want %+v\n%s", hostsOf(after), hostsOf(before), edited)
	}
}

// hostsOf are the hosts of an inventory, wherever the file names them.
func hostsOf(inv *Inventory) []Host {
	hosts := slices.Clone(inv.Hosts)
	for i := range hosts {
		hosts[i].Line, hosts[i].path = 0, ""
	}
	return hosts
}

// Lists of many shapes lose the hosts that they shall lose, and keep the others, with their names, in their order, and every
// comment that is beside another entry.
func TestRemoveHostsFromManyShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	for range 500 {
		text, comments := shape(r)
		inv, err := Decode("inventory.yaml", []byte(text), testOptions())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var gone []string
		var want []Host
		for _, h := range hostsOf(inv) {
			if h.Role == Worker && r.IntN(3) == 0 {
				gone = append(gone, h.ID())
			} else {
				want = append(want, h)
			}
		}
		edited, err := RemoveHosts([]byte(text), gone)
		if err != nil {
			t.Fatalf("%v: %v\n%s", gone, err, text)
		}
		after, err := Decode("inventory.yaml", edited, testOptions())
		if err != nil || !reflect.DeepEqual(hostsOf(after), want) {
			t.Fatalf("%v: %v\n%s\nbecame\n%s", gone, err, text, edited)
		}
		for first, comment := range comments { // which is on the line of its entry
			if stays := slices.ContainsFunc(want, func(h Host) bool { return strings.HasPrefix(h.Name, first) }); stays != bytes.Contains(edited, []byte(comment)) {
				t.Fatalf("%v: %s\n%s\nbecame\n%s", gone, comment, text, edited)
			}
		}
	}
}

// shape is an inventory of some shape, and the comments on lines of entries, by how the names of their hosts begin.
func shape(r *rand.Rand) (text string, comments map[string]string) {
	comments = map[string]string{}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	indent, quote := strings.Repeat(" ", r.IntN(3)*2), pick("", "'", `"`)
	text = "hosts:\n" + indent + "- {address: 10.9.9.9, role: control-plane, name: cp}\n"
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprintf("h%d-", i)
		address, host := fmt.Sprintf("10.0.%d.5", i), name+"x"
		if r.IntN(2) == 0 {
			part := pick("[1-4]", "[1,3,5-7]", "[08-11]", "[2-3]")
			address, host = fmt.Sprintf("10.0.%d.%s", i, strings.ReplaceAll(part, "08", "8")), name+part
		}
		comments[name] = "# of " + name
		text += pick("", "", "\n", indent+"# above\n", "\n"+indent+"# - address: old\n")
		if r.IntN(3) == 0 {
			if quote == "" {
				host, address = `"`+host+`"`, `"`+address+`"`
			}
			text += fmt.Sprintf("%s- { name: %[2]s%[3]s%[2]s, address: %[2]s%[4]s%[2]s } # of %[5]s\n", indent, quote, host, address, name)
			continue
		}
		text += fmt.Sprintf("%s- address: %[2]s%[3]s%[2]s # of %[4]s\n%[1]s  name: %[2]s%[5]s%[2]s\n", indent, quote, address, name, host)
		text += pick("", indent+"  labels: {a: b}\n", indent+"  # below\n", indent+"  labels:\n"+indent+"    a: |-\n"+indent+"      c\n")
	}
	return text + pick("", "\n", "# end\n", "\n# end\nswap: refuse\n"), comments
}
