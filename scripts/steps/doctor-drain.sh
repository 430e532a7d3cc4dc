#!/usr/bin/env bash
# Moves the pods away from a node whose driver hangs, before its host reboots. Pods that were told to end and cannot, because
# they wait for the card, are no hindrance: the reboot ends them. Values: node, patience (seconds for those that can),
# agreed (yes: so did the operator, to the end of what holds cards there).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
log=$KGPU_STEP/drain.log

# staying prints the pods that nobody told to end and that a drain concerns: not the kubelet's own, nor a DaemonSet's.
staying() {
  node_pods "$node" | awk '$2 != "Succeeded" && $2 != "Failed" && !/ (mirror|DaemonSet|ending)( |$)/ { print $1 }' | paste -sd, | sed 's/,/, /g'
}

if ! node_there "$node"; then
  echo "there is no node $node"
  exit 0
fi
begin_drain "$node"
if ! kube drain "$node" --ignore-daemonsets "$(local_data)" --timeout "$(value patience)s" 2>&1 | tee "$log"; then
  left=$(staying)
  if [[ -n $left ]]; then
    uncordon "$node" || true
    fail NODE_DRAIN_BLOCKED "node $node: $(grep -m 1 -iE 'disruption budget|^error|cannot delete' "$log" || echo 'pods stay'): $left"
  fi
  echo 'the pods that are left were told to end: the reboot ends them'
fi
if [[ -n $(gpu_label "$node") ]]; then set_gpu_label "$node" drained; fi
