package command

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/schema"
	"kgpu.dev/kgpu/inventory"
)

// kind are the words that the help's word for an argument or a value stands for. What the help says is therefore what is
// completed, for every command that uses the same words. The usage names the formats where the word is FORMAT.
func (t *typed) kind(word, usage string) []candidate {
	switch word {
	case "INVENTORY", "FILE", "FOLDER", "PATH":
		return []candidate{{word: fileNames}}
	case "HOST":
		return t.hosts()
	case "ID", "STEP":
		return plain(plan.Kinds.IDs())
	case "REASON":
		var out []candidate
		for _, r := range reason.Table() {
			out = append(out, candidate{string(r.ID), r.Advice})
		}
		return out
	case "RUN":
		return plain(t.runs())
	case "SHELL":
		return plain(shellNames)
	case "SCHEMA":
		return plain(append([]string{"inventory"}, schema.Names()...))
	case "FORMAT":
		return plain(slices.Compact(slices.Sorted(slices.Values(formats.FindAllString(usage, -1)))))
	}
	return nil
}

func plain(words []string) (out []candidate) {
	for _, word := range words {
		out = append(out, candidate{word: word})
	}
	return out
}

// inventory is the one that the command would read; nil: there is none, or none that is valid.
func (t *typed) inventory() *inventory.Inventory {
	path := ""
	if given := t.values["inventory"]; len(given) > 0 {
		path = given[len(given)-1]
	}
	if t.command.ArgsUsage == inventoryArgument && len(t.args) == 1 {
		path = t.args[0]
	}
	inv, err := inventory.Load(cmp.Or(path, os.Getenv(inventoryVariable), usualInventory), inventory.Options{})
	if err != nil {
		return nil
	}
	return inv
}

func (t *typed) hosts() (out []candidate) {
	inv := t.inventory()
	if inv == nil {
		return nil
	}
	for _, h := range inv.Hosts {
		what := string(h.Role)
		if h.Name != "" {
			what += " " + h.Address
		}
		out = append(out, candidate{h.ID(), what})
	}
	return out
}

// runs are the names of the runs' folders, the newest first: of the inventory's cluster, or of all where there is none.
func (t *typed) runs() (out []string) {
	root, err := history.Root()
	if err != nil {
		return nil
	}
	cluster := "*"
	if inv := t.inventory(); inv != nil {
		cluster = inv.Cluster
	}
	folders, err := filepath.Glob(filepath.Join(root, cluster, "[0-9]*"))
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		out = append(out, filepath.Base(folder))
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}
