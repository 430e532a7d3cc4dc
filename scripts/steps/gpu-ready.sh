#!/usr/bin/env bash
# Waits until the scheduler has all cards. Values: nodes (a line each: node, how many cards), resource (its name;
# nvidia.com/gpu).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t nodes < <(value_lines nodes)
resource=$(value_or resource nvidia.com/gpu)

# A line for each node: its name, how many cards it has, how many of them are healthy.
nodes_template='{{range .items}}{{.metadata.name}}{{with .status.capacity}} {{or (index . "RESOURCE") 0}}{{end}}{{with .status.allocatable}} {{or (index . "RESOURCE") 0}}{{end}}
{{end}}'

# A line for each pod of the device plugin: node, name, phase, and what is said about it.
pods_template='{{range .items}}{{.spec.nodeName}} {{.metadata.name}} {{.status.phase}}{{range .status.containerStatuses}}{{with .state.waiting}} {{.reason}} {{.message}}{{end}}{{if .restartCount}} ({{.restartCount}} restarts){{end}}{{end}}
{{end}}'

no_answer='the API server'
# pending prints the nodes that lack cards, separated by commas.
pending() {
  local state line node want capacity have
  local -a lacking=()
  state=$(kube get nodes -o go-template="${nodes_template//RESOURCE/$resource}" 2>/dev/null) || {
    printf '%s' "$no_answer"
    return
  }
  for line in "${nodes[@]}"; do
    read -r node want <<<"$line"
    capacity=0 have=0
    read -r _ capacity have <<<"$(grep -m 1 "^$node " <<<"$state")" || true
    [[ ${have:-0} != "$want" ]] || continue
    line="$node: ${have:-0} of $want cards"
    if [[ ${capacity:-0} -gt ${have:-0} ]]; then line+=" ($((capacity - have)) unhealthy)"; fi
    lacking+=("$line")
  done
  local IFS=,
  printf '%s' "${lacking[*]}"
}

# plugin_says NODE prints the state of the node's device plugin, where the cluster has one; its log goes to standard error.
plugin_says() {
  local node pod state
  if [[ $resource == alpha.kubernetes.io/nvidia-gpu ]]; then
    printf 'see what the kubelet of %s says: journalctl -u kubelet' "$1"
    return
  fi
  local -a plugin=(-n kube-system -l app.kubernetes.io/name=nvidia-device-plugin)
  read -r node pod state <<<"$(kube get pods "${plugin[@]}" -o go-template="$pods_template" 2>/dev/null | grep -m 1 "^$1 ")" || true
  if [[ -z $pod ]]; then
    printf 'no device plugin on %s' "$1"
    return
  fi
  printf 'device plugin on %s: %s' "$node" "$state"
  printf 'the log of %s ends with:\n' "$pod" >&2
  kube -n kube-system logs "$pod" --tail=15 >&2 || true
  if [[ $state == *restarts* ]]; then kube -n kube-system logs "$pod" --previous --tail=15 >&2 || true; fi
}

# explain prints what is said about the device plugin on the nodes that lack cards.
explain() {
  local line node
  for line in "${nodes[@]}"; do
    read -r node _ <<<"$line"
    if [[ ",$1" == *",$node:"* ]]; then printf '; %s' "$(plugin_says "$node")"; fi
  done
}

told=
while late=$(pending) && [[ -n $late ]]; do
  if [[ $(seconds_left) -le 0 ]]; then
    [[ $late != "$no_answer" ]] || fail API_UNREACHABLE "$no_answer does not answer"
    fail GPU_NOT_ALLOCATABLE "${late//,/, }$(explain "$late")"
  fi
  if [[ $late != "$told" ]]; then
    waiting "${late//,/, }"
    told=$late
  fi
  sleep 1
done
