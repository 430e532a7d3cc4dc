#!/usr/bin/env bash
# Labels the node of this host with what gpu-features.sh has waited for, where people run the steps by hand: nobody carries it
# to the control plane.
# Values: node; keys and texts (patterns of what Kubernetes takes for a key and for a value); own (a line for each key that the
# inventory sets: those stay).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
key_pattern=$(value keys)
text_pattern=$(value texts)

declare -A own=() wanted=()
mapfile -t list < <(value_lines own)
for key in "${list[@]}"; do own[$key]=yes; done
while IFS= read -r line; do
  key=${line%%=*} text=${line#*=}
  if [[ $key =~ $key_pattern && $text =~ $text_pattern && -z ${own[$key]-} ]]; then wanted[$key]=$text; fi
done </etc/kubernetes/node-feature-discovery/features.d/gfd

words=()
for key in "${!wanted[@]}"; do words+=("$key=${wanted[$key]}"); done
before=$(as_kubelet get node "$node" -o go-template='{{with .metadata.annotations}}{{with index . "kgpu.dev/gpu-labels"}}{{.}}{{end}}{{end}}') ||
  fail_transient API_UNREACHABLE "node $node cannot be read"
IFS=, read -r -a list <<<"$before"
for key in "${list[@]}"; do
  if [[ $key =~ $key_pattern && -z ${wanted[$key]+x}${own[$key]-} ]]; then words+=("$key-"); fi
done
if [[ ${#words[@]} -gt 0 ]]; then as_kubelet label --overwrite node "$node" "${words[@]}"; fi
names=$(printf '%s\n' "${!wanted[@]}" | sort | paste -sd , -)
if [[ $names != "$before" ]]; then as_kubelet annotate --overwrite node "$node" "kgpu.dev/gpu-labels=$names"; fi
