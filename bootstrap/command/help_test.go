package command

import "testing"

// A list of commands has a line for each, to the end of a clause.
func TestBrief(t *testing.T) {
	for usage, want := range map[string]string{
		"prove every card": "prove every card",
		"say what up would do; exit status 2 when so": "say what up would do",
		"run kubectl on the cluster: here, or there":  "run kubectl on the cluster",
		"log in to a host, or run it, as it says":     "log in to a host, or run it",
		"no clause ends in this very long sentence":   "no clause ends in this very long sentence",
	} {
		if got := brief(usage, 30); got != want {
			t.Errorf("%q became %q, want %q", usage, got, want)
		}
	}
}
