package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/status"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// statusWaiting writes which pods wait for cards, and why: those whose reason is the same stand together.
func statusWaiting(p *Page, waiting status.Waiting) {
	if waiting.Count == 0 {
		return
	}
	p.say(plain, "", "")
	p.say(bold, "PODS THAT WAIT FOR CARDS", "")
	last := ""
	for _, pod := range waiting.Pods {
		if pod.Why != last && last != "" {
			p.say(dim, "    "+last, "")
		}
		last = pod.Why
		p.say(yellow, "  "+pod.Namespace+"/"+pod.Name, " ("+cardsOfPod(pod.Cards, false)+")")
	}
	p.say(dim, "    "+last, "")
	if more := waiting.Count - len(waiting.Pods); more > 0 {
		p.say(plain, "", fmt.Sprintf("  and %d more", more))
	}
	if waiting.Notebook {
		p.say(bold, "  →", " the notebook has a card: `kgpu notebook --stop` gives it back")
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
