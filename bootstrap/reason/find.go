package reason

import (
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/nearest"
)

// Find returns the reason that a person means: by its ID, in any case and with dashes for underscores, or by its exit status.
func Find(word string) (Reason, bool) {
	if exit, err := strconv.Atoi(word); err == nil {
		for _, r := range Table() {
			if r.Exit == exit {
				return r, true
			}
		}
		return Reason{}, false
	}
	r, ok := table[ID(normal(word))]
	return r, ok
}

// Closest returns the ID that word is most likely a misspelling, or a part, of; empty: none is near.
func Closest(word string) ID {
	word = normal(word)
	if len(word) < 3 {
		return ""
	}
	var ids []string
	for _, r := range Table() {
		ids = append(ids, string(r.ID))
	}
	if near := nearest.Word(word, ids); near != "" {
		return ID(near)
	}
	for _, r := range Table() {
		if strings.Contains(string(r.ID), word) {
			return r.ID
		}
	}
	return ""
}

func normal(word string) string { return strings.ToUpper(strings.ReplaceAll(word, "-", "_")) }
