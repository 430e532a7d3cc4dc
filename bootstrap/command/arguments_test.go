package command

import (
	"slices"
	"testing"

	"github.com/urfave/cli/v2"
)

func testApp() *cli.App {
	return App("test", Group("", Up(), AddWorker(), RemoveWorker(), Reset(), Render(), Kubectl(), SSH(), User()))
}

func TestFlagsFirst(t *testing.T) {
	for _, c := range []struct{ typed, want []string }{
		{[]string{"kgpu"}, []string{"kgpu"}},
		{[]string{"kgpu", "--help"}, []string{"kgpu", "--help"}},
		{[]string{"kgpu", "up"}, []string{"kgpu", "up", "--"}},
		{[]string{"kgpu", "up", "a.yaml", "--output", "json"}, []string{"kgpu", "up", "--output", "json", "--", "a.yaml"}},
		{[]string{"kgpu", "up", "a.yaml", "--limit"}, []string{"kgpu", "up", "--limit"}},
		{[]string{"kgpu", "up", "a.yaml", "-v"}, []string{"kgpu", "up", "-v", "--", "a.yaml"}},
		{[]string{"kgpu", "reset", "w1", "--yes", "w2"}, []string{"kgpu", "reset", "--yes", "--", "w1", "w2"}},
		{[]string{"kgpu", "reset", "w1", "--inventory=a.yaml"}, []string{"kgpu", "reset", "--inventory=a.yaml", "--", "w1"}},
		{[]string{"kgpu", "add-worker", "-i", "a.yaml", "10.0.0.1", "--", "--odd"}, []string{"kgpu", "add-worker", "-i", "a.yaml", "--", "10.0.0.1", "--odd"}},
		{[]string{"kgpu", "kubectl", "--", "get", "nodes", "-o", "wide"}, []string{"kgpu", "kubectl", "--", "get", "nodes", "-o", "wide"}},
		{[]string{"kgpu", "kubectl", "-i", "a.yaml", "exec", "pod", "--", "ls", "-l"}, []string{"kgpu", "kubectl", "-i", "a.yaml", "--", "exec", "pod", "--", "ls", "-l"}},
		{[]string{"kgpu", "kubectl", "-i", "a.yaml", "--", "exec", "pod", "--", "ls"}, []string{"kgpu", "kubectl", "-i", "a.yaml", "--", "exec", "pod", "--", "ls"}},
		{[]string{"kgpu", "ssh", "w1", "--", "nvidia-smi", "-L"}, []string{"kgpu", "ssh", "--", "w1", "--", "nvidia-smi", "-L"}},
		{[]string{"kgpu", "user", "create", "joe", "--namespace", "lab", "-o", "f"}, []string{"kgpu", "user", "create", "--namespace", "lab", "-o", "f", "--", "joe"}},
		{[]string{"kgpu", "up", "a.yaml", "--yes", "--help"}, []string{"kgpu", "up", "--help"}},
		{[]string{"kgpu", "up", "--", "--help"}, []string{"kgpu", "up", "--", "--help"}},
		{[]string{"kgpu", "help", "user", "create"}, []string{"kgpu", "user", "create", "--help"}},
		{[]string{"kgpu", "-h", "up", "a.yaml"}, []string{"kgpu", "up", "--help"}},
		{[]string{"kgpu", "kubectl", "get", "--help"}, []string{"kgpu", "kubectl", "--", "get", "--help"}},
		{[]string{"kgpu", "user"}, []string{"kgpu", "user", "--"}},
	} {
		if got := flagsFirst(testApp(), c.typed); !slices.Equal(got, c.want) {
			t.Errorf("%q became %q, want %q", c.typed, got, c.want)
		}
	}
}
