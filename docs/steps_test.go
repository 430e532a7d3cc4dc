package docs

import (
	"fmt"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/plan"
)

const stepsIntroduction = `# The steps

<!-- Made from bootstrap/plan/kinds.go by go test ./docs -update: change it there. -->

What kgpu does on hosts is made of these steps. ` + "`kgpu plan`" + ` says which of them a cluster needs, and why; events, the records of runs
and ` + "`kgpu runs timeline`" + ` name them. Their IDs stay as they are from one version of kgpu to the next.

` + "`--only`" + ` and ` + "`--skip`" + ` choose steps by ID or by pattern, and may be repeated: ` + "`kgpu up --only 'driver/*'`, `kgpu up --skip repo/docker`" + `. A
step that is left out counts as done for those that need it. Where the ID of a step ends with NODE, it has the node's name there;
without one it means the steps of all nodes.

Some steps disrupt what runs on a node: those of the driver, and with docker those that restart it. The drain of the node,
` + "`node/drain/NODE`, and its end, `node/uncordon/NODE`, come with them whatever `--only`" + ` says, and go where they are left out. Only
` + "`--skip node/drain`" + ` has them done on nodes with pods.

| step | what it does |
|---|---|
`

// TestSteps holds that the page about steps is the one that the table of kinds makes.
func TestSteps(t *testing.T) {
	var b strings.Builder
	b.WriteString(stepsIntroduction)
	for _, id := range plan.Kinds.IDs() {
		kind := plan.Kinds.Of(id)
		if kind.PerNode {
			id += "/NODE"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", id, kind.Title)
	}
	made(t, "steps.md", b.String())
}
