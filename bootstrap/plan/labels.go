package plan

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// gpuLabelsOf annotates nodes with the names of the labels that kgpu put there for gpu-feature-discovery, with commas between.
const gpuLabelsOf = "kgpu.dev/gpu-labels"

// outputFeatures is what a host's gpu-feature-discovery tells: a line key=value for each label.
const outputFeatures = "features"

const driverFeature = "nvidia.com/cuda.driver-version.full"

// gpuLabels plans the labels that tell of the nodes' cards: gpu-feature-discovery writes them to a file of its host, and what
// is in there at each run goes to the node. fresh says why what is there now is out of date; empty: it is not.
func (b *builder) gpuLabels(needs []graph.Ref, fresh string) {
	if b.mechanism() != catalog.DevicePlugins {
		return // gpu-feature-discovery comes with the device plugin
	}
	var read []graph.Ref
	var reasons []string
	var byHand []*graph.Step
	nodes := map[graph.Ref]*host{}
	for _, h := range b.members() {
		if h.cards == 0 {
			continue
		}
		reason := cmp.Or(fresh, b.labelsMissing(h))
		if reason == "" {
			b.skip(h, "gpu/features", "the labels of its cards are set")
			continue
		}
		ref := b.side(h, graph.Step{
			Ref: graph.Ref{ID: "gpu/features"}, Reason: reason,
			Needs: slices.Concat(needs, h.gpuLast),
		})
		read, reasons, nodes[ref] = append(read, ref), append(reasons, h.node), h
		byHand = append(byHand, &graph.Step{
			Ref: graph.Ref{Host: h.id, ID: "gpu/labels"}, Title: "label the node with its cards", Reason: reason, Script: "gpu-labels",
			Needs: []graph.Ref{ref},
			Input: graph.Input{Values: map[string]string{
				"node": h.node, "keys": labelKey.String(), "texts": labelValue.String(), "own": lines(sortedKeys(h.Labels)...),
			}},
		})
	}
	if len(read) == 0 {
		return
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "gpu/labels"}, Reason: "missing or changed on " + strings.Join(reasons, ", "),
		Needs: slices.Concat(needs, read), ByHand: byHand,
		LateInput: func(out graph.Outputs) (graph.Input, error) {
			var list []string
			for _, ref := range read {
				features, err := facts.Features(strings.Split(strings.TrimSpace(string(out[ref][outputFeatures])), "\n"))
				if err != nil {
					return graph.Input{}, err
				}
				h := nodes[ref]
				list = append(list, labelLines(h, b.NodeOf(h.Machine), wantedLabels(h, features))...)
			}
			return graph.Input{Values: map[string]string{"nodes": lines(list...)}}, nil
		},
	})
}

// labelsMissing says why the labels of a host's cards have to be set; empty: they are right.
func (b *builder) labelsMissing(h *host) string {
	features := h.Facts.NVIDIA.Features
	node := b.NodeOf(h.Machine)
	switch {
	case node == nil:
		return "the node is new"
	case features == nil:
		return "gpu-feature-discovery has not told of the cards"
	case b.driverChanges(h):
		return "the driver changes"
	case h.Facts.NVIDIA.Loaded != "" && features[driverFeature] != h.Facts.NVIDIA.Loaded:
		return fmt.Sprintf("gpu-feature-discovery has not told of driver %s", h.Facts.NVIDIA.Loaded)
	}
	if missing := labelLines(h, node, wantedLabels(h, features)); len(missing) > 0 {
		_, first, _ := strings.Cut(missing[0], "\t")
		return fmt.Sprintf("%d to set: %s", len(missing), strings.ReplaceAll(first, "\t", " "))
	}
	return ""
}

func (b *builder) driverChanges(h *host) bool {
	return slices.ContainsFunc(b.graph.Steps, func(s *graph.Step) bool { return s.Host == h.id && strings.HasPrefix(s.ID, "driver/") })
}

// What Kubernetes takes for a label. Names of machines may be no such value, those of instances (1g.5gb+me) no such key.
// Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/.
var (
	labelKey   = regexp.MustCompile(`^nvidia\.com/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
)

// wantedLabels are the labels that a host's node gets of what was found out. What the inventory sets stays.
func wantedLabels(h *host, features map[string]string) map[string]string {
	out := maps.Clone(features)
	maps.DeleteFunc(out, func(key, value string) bool {
		_, own := h.Labels[key]
		return own || !labelKey.MatchString(key) || !labelValue.MatchString(value)
	})
	return out
}

// labelLines are what has to be done to a node, for cluster-nodes.sh. Labels that kgpu put there and nobody reports any more go.
func labelLines(h *host, node *facts.Node, want map[string]string) []string {
	var out []string
	for _, k := range sortedKeys(want) {
		if have, ok := machine.LabelOf(node, k); !ok || have != want[k] {
			out = append(out, fmt.Sprintf("%s\tlabel\t%s=%s", h.node, k, want[k]))
		}
	}
	var ours []string
	if node != nil { // the annotation is the node's own to write
		ours = slices.DeleteFunc(slices.Clone(node.GPULabels), func(k string) bool { return !labelKey.MatchString(k) })
	}
	for _, k := range ours {
		_, wanted := want[k]
		_, inventory := h.Labels[k]
		if _, there := machine.LabelOf(node, k); there && !wanted && !inventory {
			out = append(out, fmt.Sprintf("%s\tlabel\t%s-", h.node, k))
		}
	}
	if keys := sortedKeys(want); !slices.Equal(keys, ours) {
		out = append(out, fmt.Sprintf("%s\tannotation\t%s=%s", h.node, gpuLabelsOf, strings.Join(keys, ",")))
	}
	return out
}
