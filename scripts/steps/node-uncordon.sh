#!/usr/bin/env bash
# Brings the device plugin back to a drained node with cards, waits until the node is ready and its cards can be had, and lets
# pods come again. Values: node, cards (how many it has).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
cards=$(value cards)

# The Ready condition, then how many there are of each of NVIDIA's resources: a card may be offered in parts.
# shellcheck disable=SC2016 # Go's variables
node_template='{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{range $name, $count := .status.allocatable}} {{$name}}={{$count}}{{end}}
'

# lacks prints what the node lacks.
lacks() {
  local ready resources word count=0 pods
  read -r ready resources <<<"$(kube get node "$node" -o go-template="$node_template" 2>/dev/null)" || true
  if [[ $ready != True ]]; then
    printf 'node %s is not ready' "$node"
    return
  fi
  [[ $cards -gt 0 ]] || return 0
  for word in $resources; do
    # Kubernetes writes 2000 as 2k.
    if [[ $word =~ ^nvidia\.com/[^=]*=([0-9]+)(k?)$ ]]; then count=$((count + ${BASH_REMATCH[1]}${BASH_REMATCH[2]:+ * 1000})); fi
  done
  pods=$(node_pods "$node" 2>/dev/null | awk '/ cards( |$)/ { print / Ready=True/ ? "ready" : "waits" }') || pods=
  if [[ -z $pods || $pods == *waits* ]]; then
    printf 'the device plugin of %s is not ready' "$node"
  elif [[ $count -lt $cards ]]; then
    printf '%s: %s of %s cards' "$node" "$count" "$cards"
  fi
}

if ! node_there "$node"; then
  echo "there is no node $node"
  exit 0
fi
if [[ $cards -gt 0 ]]; then set_gpu_label "$node" true; fi
told=
while late=$(lacks) && [[ -n $late ]]; do
  if [[ $(seconds_left) -le 0 ]]; then
    [[ $late != *'is not ready' || $late == 'the device'* ]] || fail NODE_NOT_READY "$late; it stays cordoned"
    fail GPU_NOT_ALLOCATABLE "$late; the node stays cordoned"
  fi
  if [[ $late != "$told" ]]; then
    waiting "$late"
    told=$late
  fi
  pause
done
uncordon "$node"
