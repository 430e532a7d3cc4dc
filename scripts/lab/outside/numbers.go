package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
)

var number = regexp.MustCompile(`\d+`)

// numbers are the numbers in a version or a tag, in order.
func numbers(s string) []int {
	var out []int
	for _, m := range number.FindAllString(s, -1) {
		n, _ := strconv.Atoi(m) // digits alone; what is too large for an int counts as the largest
		out = append(out, n)
	}
	return out
}

// compareNumbers orders two texts of one shape by the numbers in them.
func compareNumbers(a, b string) int {
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), cmp.Compare(a, b))
}

// sameShape reports whether two texts differ in numbers only: v0.19.1 and v0.20.0, and not v0.20.0-rc.1.
func sameShape(a, b string) bool {
	return number.ReplaceAllString(a, "0") == number.ReplaceAllString(b, "0")
}

// newestLike is the newest of the texts that has the shape of this one; empty: none is newer.
func newestLike(this string, all []string) string {
	newest := this
	for _, other := range all {
		if sameShape(this, other) && slices.Compare(numbers(other), numbers(newest)) > 0 {
			newest = other
		}
	}
	if newest == this {
		return ""
	}
	return newest
}
