package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

// TestInventory holds that the reference of the inventory is the one that the schema makes, with an example of each key.
func TestInventory(t *testing.T) {
	r := reference{t: t}
	r.read("../examples/full.yaml")
	r.read("testdata/more.yaml")
	made(t, "inventory.md", r.page())
}

// made holds that a page is what the sources make, or writes it.
func made(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got := read(t, page)
	if got != want {
		t.Errorf("%s is not what the sources make: go test ./docs -update writes it", page)
	}
}

// reference makes the page.
type reference struct {
	t        *testing.T
	defs     *yaml.Node
	examples []*yaml.Node // files with an example of each key, the best first
}

func (r *reference) read(path string) {
	r.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	environment := func(string) (string, bool) { return "secret", true }
	if _, err := inventory.Decode(path, text, inventory.Options{Env: environment}); err != nil {
		r.t.Errorf("%s: %v", path, err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		r.t.Fatal(err)
	}
	r.examples = append(r.examples, file.Content[0])
}

func (r *reference) page() string {
	var file yaml.Node // YAML has the order of the keys, which a map would lose
	if err := yaml.Unmarshal(inventory.Schema(), &file); err != nil {
		r.t.Fatal(err)
	}
	top := file.Content[0]
	r.defs = child(top, "$defs")
	var b strings.Builder
	b.WriteString(inventoryIntroduction)
	b.WriteString("\n## The top of the file\n\n")
	r.section(&b, top, nil)
	properties := child(top, "properties")
	for i := 0; i < len(properties.Content); i += 2 {
		r.sections(&b, properties.Content[i+1], []string{properties.Content[i].Value})
	}
	b.WriteString(changesIntroduction)
	for _, c := range plan.Changes {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(c.Keys), c.Answer, code(c.Steps), c.Says)
	}
	return b.String()
}

// code writes names as they are typed.
func code(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, "`"+name+"`")
	}
	return strings.Join(quoted, ", ")
}

const changesIntroduction = `
## What may change while the cluster runs

Change the file and run ` + "`kgpu up`; `kgpu plan`" + ` shows before what it would do. What a cluster or a node keeps as it was made with is refused
(` + "`CLUSTER_SETTING_FIXED`, `KUBERNETES_VERSION_CHANGE`" + `) with the key's place in the file and what runs, and nothing on any host changes. Where
the file does not have such a key, what runs counts. Hosts that are added to the file join; one that is taken out of it stays a node until
` + "`kgpu remove-worker`" + `. No step: nothing changes on any host.

| keys | on a cluster that runs | steps that it may take | what it disrupts, or the way to go |
|---|---|---|---|
`

// sections writes a section for a mapping, and for those in it.
func (r *reference) sections(b *strings.Builder, n *yaml.Node, path []string) {
	n, path = r.mapping(n, path)
	if n == nil || slices.Contains(path[:len(path)-1], path[len(path)-1]) || len(path) > 1 && path[0] == "hosts[]" {
		return // a bastion of a bastion; the ssh of a host
	}
	fmt.Fprintf(b, "\n## %s\n\n", strings.Join(path, "."))
	r.section(b, n, path)
	properties := child(n, "properties")
	for i := 0; i < len(properties.Content); i += 2 {
		r.sections(b, properties.Content[i+1], append(slices.Clone(path), properties.Content[i].Value))
	}
}

// mapping is the schema of the mapping that n describes, or of the items of the list; nil: it is neither.
func (r *reference) mapping(n *yaml.Node, path []string) (*yaml.Node, []string) {
	if items := child(n, "items"); items != nil {
		path = append(slices.Clone(path[:len(path)-1]), path[len(path)-1]+"[]")
		n = items
	}
	for _, part := range r.alternatives(n) {
		if child(part, "properties") != nil {
			return part, path
		}
	}
	return nil, path
}

// alternatives are the schemas that a key's value may have, references resolved, without those to the environment.
func (r *reference) alternatives(n *yaml.Node) (out []*yaml.Node) {
	if ref := child(n, "$ref"); ref != nil {
		name := strings.TrimPrefix(ref.Value, "#/$defs/")
		if name == "reference" {
			return nil
		}
		return r.alternatives(child(r.defs, name))
	}
	if any := child(n, "anyOf"); any != nil {
		for _, part := range any.Content {
			out = append(out, r.alternatives(part)...)
		}
		return out
	}
	return []*yaml.Node{n}
}

func (r *reference) section(b *strings.Builder, n *yaml.Node, path []string) {
	var required []string
	if list := child(n, "required"); list != nil {
		for _, name := range list.Content {
			required = append(required, name.Value)
		}
	}
	b.WriteString("| key | values | default | what it means | example |\n|---|---|---|---|---|\n")
	properties := child(n, "properties")
	for i := 0; i < len(properties.Content); i += 2 {
		key, value := properties.Content[i].Value, properties.Content[i+1]
		meaning, byDefault := r.meaning(value)
		if slices.Contains(required, key) {
			byDefault = "must be there"
		}
		name, example := "`"+key+"`", r.example(append(slices.Clone(path), key))
		if into, at := r.mapping(value, append(slices.Clone(path), key)); into != nil {
			target := strings.Join(at, ".")
			if len(at) > 1 && (at[0] == "hosts[]" || slices.Contains(at[:len(at)-1], key)) {
				target = map[string]string{"ssh": "ssh", "bastion": "ssh.bastion"}[key]
			}
			name, example = fmt.Sprintf("[%s](#%s)", name, anchor(target)), "" // it has some of its own
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", name, r.values(value), byDefault, cell(meaning), example)
	}
}

// anchor is what a heading is linked by.
func anchor(heading string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(heading))
}

// meaning is what the schema says of a key, with its default apart.
func (r *reference) meaning(n *yaml.Node) (meaning, byDefault string) {
	text := child(n, "description").Value
	for _, mark := range []string{" Default: ", " Left out: "} {
		if before, after, ok := strings.Cut(text, mark); ok {
			return before, strings.TrimSuffix(cell(after), ".")
		}
	}
	return text, ""
}

// values are those that a key may have, in words.
func (r *reference) values(n *yaml.Node) string {
	var words []string
	for _, part := range r.alternatives(n) {
		kind := child(part, "type")
		text := ""
		if kind != nil {
			text = kind.Value
			if len(kind.Content) > 0 {
				text = kind.Content[0].Value
			}
		}
		switch enum, constant, least := child(part, "enum"), child(part, "const"), child(part, "minimum"); {
		case enum != nil:
			for _, value := range enum.Content {
				words = append(words, "`"+value.Value+"`")
			}
		case constant != nil:
			words = append(words, "`"+constant.Value+"`")
		case least != nil:
			words = append(words, least.Value+" to "+child(part, "maximum").Value)
		case text == "boolean":
			words = append(words, "`true`, `false`")
		case text == "object":
			words = append(words, "keys")
		case text == "array":
			words = append(words, "a list")
		case text == "integer", text == "number":
			words = append(words, "a number")
		default:
			words = append(words, "text")
		}
	}
	return strings.Join(slices.Compact(words), ", ")
}

// example is how a key is written, from the first of the examples that has it.
func (r *reference) example(path []string) string {
	for _, file := range r.examples {
		for _, n := range lookUp(file, path) {
			return "`" + path[len(path)-1] + ": " + flow(n) + "`"
		}
	}
	r.t.Errorf("no example has %s: put one into docs/testdata/more.yaml", strings.Join(path, "."))
	return ""
}

// flow is a value in one line.
func flow(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		var parts []string
		for i := 0; i < len(n.Content); i += 2 {
			parts = append(parts, n.Content[i].Value+": "+flow(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for _, part := range n.Content {
			parts = append(parts, flow(part))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if n.Style&yaml.DoubleQuotedStyle != 0 {
		return `"` + n.Value + `"`
	}
	return n.Value
}

// lookUp are the values at a path; each item of a list may have one.
func lookUp(n *yaml.Node, path []string) []*yaml.Node {
	if len(path) == 0 {
		return []*yaml.Node{n}
	}
	name, list := strings.CutSuffix(path[0], "[]")
	value := child(n, name)
	switch {
	case value == nil:
		return nil
	case !list:
		return lookUp(value, path[1:])
	}
	var out []*yaml.Node
	for _, item := range value.Content {
		out = append(out, lookUp(item, path[1:])...)
	}
	return out
}

// child is the value of a key; nil: it is not there.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// cell makes text the content of a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }

const inventoryIntroduction = `# The inventory

<!-- Made from inventory/schema.json, examples/full.yaml and bootstrap/plan/changes.go by go test ./docs -update: change it there. -->

One file names your machines and says what the cluster is to be. Only ` + "`hosts`" + ` must be there. ` + "`kgpu validate`" + ` checks the
file without contacting a host, and names every problem at once with its line and column. An editor that knows YAML's language
server completes the keys: ` + "`kgpu schema > inventory.schema.json`" + `, and as the first line of the inventory:

    # yaml-language-server: $schema=inventory.schema.json

- ` + "`${NAME}` in any text is replaced by the environment variable NAME; `$${` stands for `${`" + ` itself.
- Secrets never stand in the file: ` + "`${NAME}` or `file:PATH`" + ` refers to them. Such a file must be
  yours, and nobody else may read it: ` + "`chmod 600`" + `.
- Paths may begin with ` + "`~/`" + `; others that are not absolute begin at the file's own folder.
- Addresses and names may be ranges: ` + "`10.0.0.[11-14]`, `gpu[01-08].lab`" + `.

All of it in one file: [examples/full.yaml](../examples/full.yaml). What becomes of a key that changes later:
[what may change while the cluster runs](#what-may-change-while-the-cluster-runs).

**An inventory is as trusted as a Makefile.** It decides which of your files and environment variables kgpu reads, to which
machines it logs in with your keys, which of them asks for a password and is given one, and where kgpu notes host keys. ` + "`kgpu plan`" + `
changes no host, but it does log in. Read an inventory that somebody else wrote before you use it; ` + "`kgpu validate`" + ` contacts nobody.
`
