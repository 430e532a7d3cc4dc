package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// programs are those that advice sends people to, besides kgpu: on their hosts, or here.
var programs = strings.Fields("apt-get apt-mark apt-cache apt-config containerd curl df docker dpkg free getent grub-editenv ip journalctl kubeadm kubectl ls mount mv nvidia-ctk nvidia-smi " +
	"nvidia-uninstall reboot resolvectl rm ssh ssh-keygen ssh-keyscan sshd sudo systemctl ufw update-alternatives uptime")

var (
	quoted  = regexp.MustCompile("`[^`]+`")
	option  = regexp.MustCompile(`(?:^|[\s(])(--?[a-z][a-z-]*)`)
	someKey = regexp.MustCompile(`^[a-z]+[A-Z][A-Za-z]*$`)                                                        // podCIDR
	keyed   = regexp.MustCompile(`^\{?[a-z][A-Za-z]*(\.[a-z][A-Za-z]*)*:( |$)`)                                   // ssh: {user: …}, gpu.driver.source: none, hostKey:
	dotted  = regexp.MustCompile(`^[a-z][A-Za-z]*(\.[a-z][A-Za-z]*)+$`)                                           // ssh.user
	verb    = regexp.MustCompile(`%(\[\d+\])?[a-z]`)                                                              // of fmt
	page    = regexp.MustCompile(`\bdocs/([a-z-]+\.md)(?:#([a-z0-9-]+))?`)                                        // a page, and a place in it
	backed  = regexp.MustCompile("\\\\`")                                                                         // a backquote in a shell's double quotes
	spared  = regexp.MustCompile(`^([a-z]+\.(env|kgpu|service|conf|yaml|sh|json|md|go|io|dev)\b|cgroupDriver: )`) // no key, though it looks like one
)

// TestAdvice holds that every advice can be followed: over the whole table of reasons, the commands, options, keys of the inventory
// and reasons that it names are there.
func TestAdvice(t *testing.T) {
	keys := inventoryKeys(t)
	for _, r := range reason.Table() {
		for _, text := range []string{r.Meaning, r.Advice} {
			if strings.Count(text, "`")%2 != 0 {
				t.Errorf("%s: backquotes do not match: %s", r.ID, text)
			}
			// An option stands in a command line: not every command that ends so has it.
			for _, m := range option.FindAllStringSubmatch(quoted.ReplaceAllString(text, ""), -1) {
				t.Errorf("%s: the option %s is no part of a command: %s", r.ID, m[1], text)
			}
			for _, span := range quoted.FindAllString(text, -1) {
				if err := followed(span, keys, true); err != nil {
					t.Errorf("%s: %s: %v", r.ID, span, err)
				}
			}
		}
	}
}

// TestAdviceInSources holds the same of what the sources say beside the table, as far as it can be told there what is an advice.
func TestAdviceInSources(t *testing.T) {
	keys := inventoryKeys(t)
	texts, spans := spokenIn(t), 0
	for where, all := range texts {
		for _, text := range all {
			for _, m := range page.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(anchors(t, "docs/"+m[1]), m[2]) {
					t.Errorf("%s names %s, which is not there", where, m[0])
				}
			}
			if strings.Count(text, "`")%2 != 0 {
				continue // a part of a text
			}
			for _, span := range quoted.FindAllString(text, -1) {
				spans++
				if err := followed(span, keys, false); err != nil {
					t.Errorf("%s: %s: %v", where, span, err)
				}
			}
		}
	}
	if spans < 200 {
		t.Errorf("only %d places were found", spans)
	}
}

// TestOptionsInAdvice holds that options which the sources name in an advice outside of a command line are some command's, and those
// of init's story init's own.
func TestOptionsInAdvice(t *testing.T) {
	options := map[string][]string{}
	for _, c := range newApp().Commands {
		for _, f := range c.Flags {
			options[c.Name], options[""] = append(options[c.Name], f.Names()...), append(options[""], f.Names()...)
		}
	}
	advices := 0
	err := filepath.WalkDir("bootstrap", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		command := ""
		if path == "bootstrap/init.go" {
			command = "init"
		}
		for _, text := range adviceIn(file) {
			advices++
			for _, m := range option.FindAllStringSubmatch(quoted.ReplaceAllString(text, ""), -1) {
				if !slices.Contains(options[command], strings.TrimLeft(m[1], "-")) {
					t.Errorf("%s: no option %s: %s", path, m[1], text)
				}
			}
		}
		return nil
	})
	if err != nil || advices < 30 {
		t.Errorf("%d texts of advice, %v", advices, err)
	}
}

// adviceIn are the texts that a file has for the field Advice.
func adviceIn(file *ast.File) (texts []string) {
	collect := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			if field, ok := x.Lhs[0].(*ast.SelectorExpr); ok && field.Sel.Name == "Advice" {
				collect(x.Rhs[0])
			}
		case *ast.KeyValueExpr:
			if key, ok := x.Key.(*ast.Ident); ok && key.Name == "Advice" {
				collect(x.Value)
			}
		}
		return true
	})
	return texts
}

// TestFollowed holds that the tests above find fault with what cannot be followed.
func TestFollowed(t *testing.T) {
	keys := inventoryKeys(t)
	for span, ok := range map[string]bool{
		"`kgpu init -v`": false, "`kgpu doctor`": true, "`kgpu up --adopt`": true, "`kgpu fix`": false, "`--ignore HOST_SWAP_ON`": false,
		"`kgpu up --ignore HOST_SWAP_ON`": true, "`kgpu up --ignore HOST_SWAP`": false,
		"`ssh: {user: …}`": true, "`ssh: {username: …}`": false, "`ssh.user`": true, "`ssh.name`": false, "`swap: disable`": true, "`swap: off`": false,
		"`{image: …}`": true, "`{picture: …}`": false, "`podCIDR`": true, "`podNetwork`": false, "`gpu.driver.source: none`": true, "`gpu.driver.none: source`": false,
		"`journalct -u kubelet`": false, "`journalctl -u kubelet`": true,
	} {
		if err := followed(span, keys, true); (err == nil) != ok {
			t.Errorf("%s: %v", span, err)
		}
	}
}

// followed says what of something between backquotes is not there. strict is for texts that are advice and nothing else.
func followed(span string, keys map[string]any, strict bool) error {
	text := verb.ReplaceAllString(strings.Trim(span, "`"), "X")
	first, _, more := strings.Cut(text, " ")
	switch {
	case spared.MatchString(text):
		return nil
	case first == "kgpu" && more:
		for _, line := range commandLines("`" + text + "`") {
			if err := parses(line); err != nil && (strict || !strings.Contains(err.Error(), "0 arguments for")) { // a name in a sentence
				return err
			}
		}
		if _, id, found := strings.Cut(text, "--ignore "); found && id != "X" && id != "ID" && !doctor.Known(strings.Fields(id)[0]) {
			return fmt.Errorf("no such reason")
		}
		return nil
	case keyed.MatchString(text):
		return keysThere(text, keys)
	case dotted.MatchString(text):
		return pathThere(strings.Split(text, "."), keys)
	case !strict:
		return nil
	case strings.HasPrefix(text, "-"):
		return fmt.Errorf("an option without its command")
	case someKey.MatchString(text):
		return pathThere([]string{text}, keys)
	case more && first == strings.ToLower(first) && !slices.Contains(programs, first):
		return fmt.Errorf("no program that is known")
	}
	return nil
}

// inventoryKeys is the schema of the inventory, which a test of its own holds against its types.
func inventoryKeys(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	must(t, json.Unmarshal(inventory.Schema(), &schema))
	return schema
}

// keysThere holds a part of an inventory against the schema, and decodes it where it is whole.
func keysThere(text string, schema map[string]any) error {
	if before, value, _ := strings.Cut(text, ":"); strings.Contains(before, ".") {
		path := strings.Split(before, ".") // gpu.driver.source: none
		text = strings.Join(path, ": {") + ": " + strings.TrimSpace(value) + strings.Repeat("}", len(path)-1)
	}
	var node map[string]any
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return err
	}
	top, whole := schema["properties"].(map[string]any), !strings.ContainsAny(text, "…$XN")
	for key, value := range node {
		if err := walkKeys([]string{key}, value, schema); err != nil {
			return err
		}
		whole = whole && top[key] != nil && value != nil && key != "hosts"
	}
	if !whole {
		return nil
	}
	_, err := inventory.Decode("advice", []byte(text+"\nhosts: [{address: 10.0.0.10, role: control-plane}]\n"), inventory.Options{})
	return err
}

func walkKeys(path []string, value any, schema map[string]any) error {
	if err := pathThere(path, schema); err != nil {
		return err
	}
	if under, ok := value.(map[string]any); ok {
		for key, value := range under {
			if err := walkKeys(append(slices.Clone(path), key), value, schema); err != nil {
				return err
			}
		}
	}
	return nil
}

// pathThere reports whether the inventory has such a key: from its top where that has the first, or else anywhere.
func pathThere(path []string, schema map[string]any) error {
	defs := schema["$defs"].(map[string]any)
	starts := []any{schema}
	if schema["properties"].(map[string]any)[path[0]] == nil {
		for _, def := range defs {
			starts = append(starts, def)
		}
	}
	for _, at := range starts {
		for i, key := range path {
			at = below(at, key, defs)
			if at == nil {
				break
			}
			if i == len(path)-1 || at == true {
				return nil
			}
		}
	}
	return fmt.Errorf("the inventory has no key %s", strings.Join(path, "."))
}

// below is the schema of a key in an object; true: anything goes there. nil: there is no such key.
func below(at any, key string, defs map[string]any) any {
	object, ok := at.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := object["$ref"].(string); ok {
		if found := below(defs[strings.TrimPrefix(ref, "#/$defs/")], key, defs); found != nil {
			return found
		}
	}
	if properties, ok := object["properties"].(map[string]any); ok && properties[key] != nil {
		return properties[key]
	}
	for _, several := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := object[several].([]any)
		for _, one := range list {
			if found := below(one, key, defs); found != nil {
				return found
			}
		}
	}
	if items := object["items"]; items != nil {
		return below(items, key, defs)
	}
	switch rest := object["additionalProperties"].(type) {
	case map[string]any:
		return rest
	case nil:
		if strings.Contains(fmt.Sprint(object["type"]), "object") && object["properties"] == nil {
			return true // of another program's
		}
	case bool:
		if rest {
			return true
		}
	}
	return nil
}

// spokenIn are the texts in the sources: strings of Go, and lines of scripts that are no comments.
func spokenIn(t *testing.T) map[string][]string {
	t.Helper()
	texts := map[string][]string{}
	for _, root := range []string{"bootstrap", "inventory", "scripts"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (path == "scripts/lab" || d.Name() == "testdata"):
				return fs.SkipDir
			case strings.HasSuffix(path, "_test.go"):
			case strings.HasSuffix(path, ".go"):
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
				if err != nil {
					return err
				}
				ast.Inspect(file, func(n ast.Node) bool {
					if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
						text, err := strconv.Unquote(literal.Value)
						must(t, err)
						texts[path] = append(texts[path], text)
					}
					return true
				})
			case strings.HasSuffix(path, ".sh"):
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for line := range strings.Lines(string(text)) {
					if !strings.HasPrefix(strings.TrimSpace(line), "#") {
						texts[path] = append(texts[path], backed.ReplaceAllString(line, "`"))
					}
				}
			}
			return nil
		})
		must(t, err)
	}
	return texts
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the places in a page that a link can lead to, by their headings; the empty one is the page itself.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	out := []string{""}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		out = append(out, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

// TestAnchors holds that links between the pages lead to places that are there.
func TestAnchors(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	must(t, err)
	links := 0
	place := regexp.MustCompile(`\]\(([a-z./-]*?)#([^)]+)\)`)
	for _, from := range append(pages, "README.md") {
		text, err := os.ReadFile(from)
		must(t, err)
		for _, m := range place.FindAllStringSubmatch(string(text), -1) {
			links++
			to := from
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(from), m[1])
			}
			if !slices.Contains(anchors(t, to), m[2]) {
				t.Errorf("%s links to %s#%s, which is not there", from, to, m[2])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}
