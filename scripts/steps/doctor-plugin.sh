#!/usr/bin/env bash
# Has the device plugin of a node start anew, and waits until it runs and holds no card for unhealthy. Pods that run keep
# their cards. Values: node.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
of_node=(-n kube-system -l app.kubernetes.io/name=nvidia-device-plugin --field-selector "spec.nodeName=$node")

# shellcheck disable=SC2016 # Go's templates
quantities='{{range $what, $much := .status.capacity}}{{if eq (printf "%.11s" $what) "nvidia.com/"}}have {{$much}}
{{end}}{{end}}{{range $what, $much := .status.allocatable}}{{if eq (printf "%.11s" $what) "nvidia.com/"}}can {{$much}}
{{end}}{{end}}'
# shellcheck disable=SC2016
pods='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.uid}}{{range .status.conditions}}{{if eq .type "Ready"}} {{js .status}}{{end}}{{end}}
{{end}}{{end}}'

# lacks prints what is missing.
lacks() {
  local state have can
  state=$(kube get pods "${of_node[@]}" -o go-template="$pods" 2>/dev/null) || state=
  if [[ $state != *' True' || $state == *"$former"* ]]; then
    printf 'the device plugin of %s' "$node"
    return
  fi
  read -r have can <<<"$(kube get node "$node" -o go-template="$quantities" 2>/dev/null | awk '{ n[$1] += $2 } END { print n["have"] + 0, n["can"] + 0 }')" || true
  [[ ${have:-0} -gt 0 && ${can:-0} -ge ${have:-0} ]] || printf 'the cards of %s: %s of %s can be had' "$node" "${can:-0}" "${have:-0}"
}

wait_api
former=$(kube get pods "${of_node[@]}" -o go-template='{{range .items}}{{.metadata.uid}} {{end}}')
former=${former%% *}
former=${former:-none}
kube delete pods "${of_node[@]}" --wait=false
told=
while late=$(lacks) && [[ -n $late ]]; do
  [[ $(seconds_left) -gt 0 ]] || fail GPU_NOT_ALLOCATABLE "$late"
  if [[ $late != "$told" ]]; then
    waiting "$late"
    told=$late
  fi
  pause
done
