package main

import (
	"slices"
	"testing"
)

func TestFlagsFirst(t *testing.T) {
	for _, c := range []struct{ typed, want []string }{
		{[]string{"kgpu"}, []string{"kgpu"}},
		{[]string{"kgpu", "--help"}, []string{"kgpu", "--help"}},
		{[]string{"kgpu", "up"}, []string{"kgpu", "up", "--"}},
		{[]string{"kgpu", "up", "a.yaml", "--output", "json"}, []string{"kgpu", "up", "--output", "json", "--", "a.yaml"}},
		{[]string{"kgpu", "up", "a.yaml", "-v"}, []string{"kgpu", "up", "-v", "--", "a.yaml"}},
		{[]string{"kgpu", "reset", "w1", "--yes", "w2"}, []string{"kgpu", "reset", "--yes", "--", "w1", "w2"}},
		{[]string{"kgpu", "reset", "w1", "--inventory=a.yaml"}, []string{"kgpu", "reset", "--inventory=a.yaml", "--", "w1"}},
		{[]string{"kgpu", "add-worker", "-i", "a.yaml", "10.0.0.1", "--", "--odd"}, []string{"kgpu", "add-worker", "-i", "a.yaml", "--", "10.0.0.1", "--odd"}},
	} {
		if got := flagsFirst(newApp(), c.typed); !slices.Equal(got, c.want) {
			t.Errorf("%q became %q, want %q", c.typed, got, c.want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"kgpu", "--help"}, 0},
		{[]string{"kgpu", "schema"}, 0},
		{[]string{"kgpu", "upp"}, 3},
		{[]string{"kgpu", "up", "--outptu", "json"}, 3},
		{[]string{"kgpu", "up"}, 3}, // no ./inventory.yaml
		{[]string{"kgpu", "add-worker"}, 3},
		{[]string{"kgpu", "up", "one.yaml", "two.yaml"}, 3},
	} {
		if got := run(t.Context(), c.args); got != c.want {
			t.Errorf("%q ended with %d, want %d", c.args, got, c.want)
		}
	}
}
