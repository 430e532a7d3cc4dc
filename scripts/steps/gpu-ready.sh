#!/usr/bin/env bash
# Waits until the scheduler has all cards. The drivers of the nodes see all of them. Values: nodes (a line each: node, how
# many, of which resource), config (of the device plugin: what its pods must be annotated with; empty: the cluster has none, its
# kubelets offer cards), prove (yes: a proof of the cards follows, which every run owes until one came to its end).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t nodes < <(value_lines nodes)
mapfile -t names < <(value_lines nodes | cut -d ' ' -f 1 | sort -u)
config=$(value_or config '')
valid_nodes "${names[@]}"
if [[ $(value_or prove no) == yes ]]; then proof_owed; fi

# A line for each resource of each node: how much it has (capacity), and how much of that is healthy (allocatable).
# shellcheck disable=SC2016 # Go's templates
nodes_template='{{range .items}}{{$node := .metadata.name}}{{range $k, $v := .status.capacity}}{{$node}} capacity {{$k}} {{$v}}
{{end}}{{range $k, $v := .status.allocatable}}{{$node}} allocatable {{$k}} {{$v}}
{{end}}{{end}}'

# A line for each pod of the device plugin: node, phase, and its configuration.
configs_template='{{range .items}}{{.spec.nodeName}} {{js .status.phase}}{{with .metadata.annotations}}{{with index . "kgpu.dev/config-sha256"}} {{.}}{{end}}{{end}}
{{end}}'

# A line for each pod of the device plugin: node, name, phase, and what is said about it.
pods_template='{{range .items}}{{.spec.nodeName}} {{.metadata.name}} {{js .status.phase}}{{range .status.containerStatuses}}{{with .state.waiting}} {{js .reason}} {{js .message}}{{end}}{{if .restartCount}} ({{.restartCount}} restarts){{end}}{{end}}
{{end}}'

plugin=(-n kube-system -l app.kubernetes.io/name=nvidia-device-plugin)
no_answer='the API server'

# quantity NODE capacity|allocatable RESOURCE prints how much there is: Kubernetes writes 2000 as 2k.
quantity() {
  awk -v node="$1" -v what="$2" -v resource="$3" '
    $1 == node && $2 == what && $3 == resource { n = $4 }
    END { if (sub(/k$/, "", n)) n *= 1000; print n + 0 }' <<<"$state"
}

# pending prints the nodes that lack cards, or where another device plugin still offers them, separated by commas.
pending() {
  local state configs line node want resource capacity have
  local -a lacking=()
  if ! state=$(kube get nodes -o go-template="$nodes_template" 2>/dev/null) ||
    ! configs=$(kube get pods "${plugin[@]}" -o go-template="$configs_template" 2>/dev/null); then
    printf '%s' "$no_answer"
    return
  fi
  for line in "${nodes[@]}"; do
    read -r node want resource <<<"$line"
    capacity=$(quantity "$node" capacity "$resource")
    have=$(quantity "$node" allocatable "$resource")
    if [[ $have != "$want" ]]; then
      line="$node: $have of $want ${resource/#nvidia.com\/gpu/cards}"
      if [[ $capacity -gt $have ]]; then line+=" ($((capacity - have)) unhealthy)"; fi
      lacking+=("$line")
    fi
  done
  for node in "${names[@]}"; do
    [[ -n $config ]] || break
    if grep -qxF "$node Running $config" <<<"$configs" || [[ " ${lacking[*]}" == *" $node: "* ]]; then continue; fi
    lacking+=("$node: the device plugin starts")
  done
  local IFS=,
  printf '%s' "${lacking[*]}"
}

plugin=(-n kube-system -l app.kubernetes.io/name=nvidia-device-plugin)

# plugin_says NODE prints the state of the node's device plugin; its log goes to standard error.
plugin_says() {
  local node pod state
  if [[ -z $config ]]; then
    printf 'see what the kubelet of %s says: journalctl -u kubelet' "$1"
    return
  fi
  read -r node pod state <<<"$(kube get pods "${plugin[@]}" -o go-template="$pods_template" 2>/dev/null | grep -m 1 "^$1 ")" || true
  if [[ -z $pod ]]; then
    printf 'no device plugin on %s' "$1"
    return
  fi
  printf 'device plugin on %s: %s' "$node" "$state"
  if [[ $state == *CrashLoopBackOff* ]]; then last_words kube-system "$pod" nvidia-device-plugin; fi
  printf 'the log of %s ends with:\n' "$pod" >&2
  kube -n kube-system logs "$pod" -c nvidia-device-plugin --tail=15 >&2 || true
  if [[ $state == *restarts* ]]; then kube -n kube-system logs "$pod" -c nvidia-device-plugin --previous --tail=15 >&2 || true; fi
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
  local node
  of_other_hosts
  for node in "${names[@]}"; do
    if [[ ",$1" == *",$node:"* ]]; then printf '; %s' "$(plugin_says "$node")"; fi
  done
}

told=
while late=$(pending) && [[ -n $late ]]; do
  if [[ $(seconds_left) -le 0 ]]; then
    [[ $late != "$no_answer" ]] || fail API_UNREACHABLE "$no_answer does not answer"
    fail GPU_NOT_ALLOCATABLE "${late//,/, }$(explain "$late")"
  fi
  watch_pulls "${plugin[@]}"
  why="${late//,/, }$(pull_text)"
  if [[ $why != "$told" ]]; then
    waiting "$why"
    told=$why
  fi
  revive "$late"
  pause
done
