// Package plural writes numbers of things as people say them.
package plural

import "fmt"

// Of is the number and the thing behind it, which takes an s unless there is one of it: "1 card", "2 cards".
func Of(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
