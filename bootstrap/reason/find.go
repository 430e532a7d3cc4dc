package reason

import (
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
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
	if len(word) < 3 || len(word) > maxID {
		return ""
	}
	var best ID
	distance := max(2, len(word)/3) + 1
	for _, r := range Table() {
		if d := levenshtein.ComputeDistance(word, string(r.ID)); d < distance {
			best, distance = r.ID, d
		}
	}
	if best != "" {
		return best
	}
	for _, r := range Table() {
		if strings.Contains(string(r.ID), word) {
			return r.ID
		}
	}
	return ""
}

// maxID is longer than any ID.
const maxID = 64

func normal(word string) string { return strings.ToUpper(strings.ReplaceAll(word, "-", "_")) }
