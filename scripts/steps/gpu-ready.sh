#!/usr/bin/env bash
# Waits until the scheduler has all cards. The drivers of the nodes see all of them. Values: nodes (a line each: node, how
# many cards).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t nodes < <(value_lines nodes)

# A line for each node: its name, how many cards it has, how many of them are healthy.
nodes_template='{{range .items}}{{.metadata.name}}{{with .status.capacity}} {{or (index . "nvidia.com/gpu") 0}}{{end}}{{with .status.allocatable}} {{or (index . "nvidia.com/gpu") 0}}{{end}}
{{end}}'

# A line for each pod of the device plugin: node, name, phase, and what is said about it.
pods_template='{{range .items}}{{.spec.nodeName}} {{.metadata.name}} {{.status.phase}}{{range .status.containerStatuses}}{{with .state.waiting}} {{.reason}} {{.message}}{{end}}{{if .restartCount}} ({{.restartCount}} restarts){{end}}{{end}}
{{end}}'

no_answer='the API server'
# pending prints the nodes that lack cards, separated by commas.
pending() {
  local state line node want capacity have
  local -a lacking=()
  state=$(kube get nodes -o go-template="$nodes_template" 2>/dev/null) || {
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

plugin=(-n kube-system -l app.kubernetes.io/name=nvidia-device-plugin)

# plugin_says NODE prints the state of the node's device plugin; its log goes to standard error.
plugin_says() {
  local node pod state
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

# revive LATE restarts the device plugins, once each, that hold cards for unhealthy: a plugin never takes back what it has
# given up, although the driver sees it again. Pods that run keep their cards.
declare -A revived=()
revive() {
  local item node pod
  local -a items
  IFS=, read -r -a items <<<"$1"
  for item in "${items[@]}"; do
    node=${item%%:*}
    if [[ $item != *' unhealthy)' || -n ${revived[$node]:-} ]]; then continue; fi
    read -r _ pod _ <<<"$(kube get pods "${plugin[@]}" -o go-template="$pods_template" 2>/dev/null | grep -m 1 "^$node .* Running")" || true
    if [[ -z $pod ]]; then continue; fi
    echo "restarting the device plugin of $node: it holds cards for unhealthy that the driver sees"
    kube -n kube-system delete pod "$pod" --wait=false || true
    revived[$node]=yes
  done
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
  revive "$late"
  sleep 1
done
