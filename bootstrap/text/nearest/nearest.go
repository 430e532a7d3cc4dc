// Package nearest finds the word that a person meant.
package nearest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// maxWord is longer than any name that kgpu knows: what is longer is no misspelling, and would take time to compare.
const maxWord = 253

// Word returns the candidate that word is most likely a misspelling of, whatever the case of either; empty: none is near. Names
// that differ in their numbers only are those of different things: gpu3 is no misspelling of gpu1.
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
		if numbered(c) && numbered(word) && numberless(c) == numberless(word) && !strings.EqualFold(c, word) {
			continue
		}
		if d := levenshtein.ComputeDistance(lower, strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// numberless is a name without its digits, in lower case.
func numberless(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

func numbered(name string) bool { return strings.ContainsFunc(name, unicode.IsDigit) }

// Hint is the sentence that follows a message about an unknown word: ` Did you mean "up"?`, with the blank in front; empty
// where no candidate is near.
func Hint(word string, candidates []string) string {
	if near := Word(word, candidates); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	return ""
}
