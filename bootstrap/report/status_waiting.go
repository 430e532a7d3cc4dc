package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/status"
)

// statusWaiting writes which pods wait for cards, and why: those whose reason is the same stand together.
func statusWaiting(w io.Writer, waiting status.Waiting) {
	if waiting.Count == 0 {
		return
	}
	fmt.Fprintln(w, "\nPODS THAT WAIT FOR CARDS")
	last := ""
	for _, p := range waiting.Pods {
		if p.Why != last && last != "" {
			fmt.Fprintf(w, "    %s\n", last)
		}
		last = p.Why
		fmt.Fprintf(w, "  %s/%s (%s)\n", p.Namespace, p.Name, cardsOfPod(p.Cards, false))
	}
	fmt.Fprintf(w, "    %s\n", last)
	if more := waiting.Count - len(waiting.Pods); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	if waiting.Notebook {
		fmt.Fprintln(w, "  → the notebook has a card: `kgpu notebook --stop` gives it back")
	}
}

// cardsOfPod is what a pod has, or wants: 2 gpu. Of cards that pods share it has shares.
func cardsOfPod(cards map[string]int, shared bool) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(cards)) {
		what := fmt.Sprintf("%d %s", cards[name], shortResource(name))
		if shared && name == catalog.GPUResource {
			what = plural.Of(cards[name], "share")
		}
		out = append(out, what)
	}
	return strings.Join(out, ", ")
}
