// Package nearest finds the word that a person meant.
package nearest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxWord is longer than any name that kgpu knows: what is longer is no misspelling, and would take time to compare.
const maxWord = 253

// Word returns the candidate that word is most likely a misspelling of, whatever the case of either; empty: none is near.
func Word(word string, candidates []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	limit := max(1, len(word)/3)
	if len(word) > 3 {
		limit = max(2, limit)
	}
	best, bestDistance := "", limit+1
	lower := strings.ToLower(word)
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := levenshtein.ComputeDistance(lower, strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Hint is the sentence that follows a message about an unknown word: ` Did you mean "up"?`, with the blank in front; empty
// where no candidate is near.
func Hint(word string, candidates []string) string {
	if near := Word(word, candidates); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return ""
}
