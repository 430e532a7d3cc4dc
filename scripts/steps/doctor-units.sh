#!/usr/bin/env bash
# Starts units that are down. Nothing that lasts changes: the ledger knows the units that are kgpu's. Values: units, node (its
# name in the cluster), cards (how many it offers when it is well).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
cards=$(value cards)
valid_nodes "$node"
mapfile -t units < <(value_lines units)

# shellcheck disable=SC2016 # Go's templates
template='{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}} {{.lastHeartbeatTime}}{{end}}{{end}}{{range $what, $much := .status.allocatable}}{{if eq $what "nvidia.com/gpu"}} {{$much}}{{end}}{{end}}'

# lacks prints what the node does not say about itself. What it said before its kubelet started anew does not count, and
# a kubelet offers no card until the device plugin has found it again.
lacks() {
  local ready heard offered
  read -r ready heard offered <<<"$(as_kubelet get node "$node" -o go-template="$template" 2>/dev/null)" || true
  if [[ $ready != True || (-n $kubelet_since && $heard < $kubelet_since) ]]; then
    printf 'the node %s' "$node"
  elif [[ ${offered:-0} -lt $cards ]]; then
    printf 'the cards of %s: %s of %s' "$node" "${offered:-0}" "$cards"
  fi
}

# node_settles waits until the node is as it was, for a minute: who looks sooner would find it unwell, and repair what heals by
# itself. What it still lacks then has another cause, which the next look tells.
node_settles() {
  local late told='' end=$(($(uptime_seconds) + 60))
  while late=$(lacks) && [[ -n $late && $(uptime_seconds) -lt $end ]]; do
    if [[ $late != "$told" ]]; then
      waiting "$late"
      told=$late
    fi
    pause
  done
  if [[ -n $late ]]; then echo "not there after a minute: $late"; fi
}

of_node='' kubelet_since=''
for unit in "${units[@]}"; do
  systemctl reset-failed -- "$unit" 2>/dev/null || true
  verb=restart
  # Whoever started one of these meanwhile has containers in it.
  case $unit in kubelet.service | containerd.service | docker.service | cri-docker.service) verb=start of_node=yes ;; esac
  if [[ $unit == kubelet.service ]] && ! unit_active "$unit"; then kubelet_since=$(date -u +%Y-%m-%dT%H:%M:%SZ); fi
  systemctl "$verb" -- "$unit" || unit_failed "$unit"
  echo "$unit: $(unit_property "$unit" ActiveState)"
done
if [[ -n $of_node && -e /etc/kubernetes/kubelet.conf ]]; then node_settles; fi
