#!/usr/bin/env bash
# Moves the pods away from a node whose containers are about to be disrupted, and then the device plugin, if it has one. Pods
# of DaemonSets stay. Values: node, agreed (yes: so did the operator, to the end of what holds cards there), patience (of a node
# whose driver hangs: how many seconds pods have that can end; those that were told to end and cannot, because they wait for the
# card, are no hindrance: the reboot ends them).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
patience=$(value_or patience '')

# unmanaged prints the pods that nothing would start again elsewhere, separated by commas.
unmanaged() {
  node_pods "$node" | awk '$2 != "Succeeded" && $2 != "Failed" && $3 !~ /^[A-Z][A-Za-z]*$/ && $3 != "mirror" { print $1 }' | paste -sd, | sed 's/,/, /g'
}

# staying prints the pods that nobody told to end and that a drain concerns: not the kubelet's own, nor a DaemonSet's.
staying() {
  node_pods "$node" | awk '$2 != "Succeeded" && $2 != "Failed" && !/ (mirror|DaemonSet|ending)( |$)/ { print $1 }' | paste -sd, | sed 's/,/, /g'
}

# give_up DETAIL ends the step; the node is as it was before.
give_up() {
  uncordon "$node" || true
  fail NODE_DRAIN_BLOCKED "$1"
}

# cards_held prints the pods that run where cards are.
cards_held() {
  node_pods "$node" | awk '/ cards( |$)/ { print $1 }' | paste -sd' '
}

if ! node_there "$node"; then
  echo "there is no node $node"
  exit 0
fi
if [[ -z $patience ]]; then
  blocked=$(unmanaged)
  [[ -z $blocked ]] || fail NODE_DRAIN_BLOCKED "node $node has pods without a controller, which would be lost: $blocked"
fi
begin_drain "$node"
served=$(gpu_label "$node")
log=$KGPU_STEP/drain.log
left=$(($(seconds_left) - 60)) # what cannot be drained is let in again, and that takes time, too
if [[ $left -lt 1 ]]; then left=1; fi # nothing is no limit to kubectl
if ! kube drain "$node" --ignore-daemonsets "$(local_data)" --timeout "${patience:-$left}s" 2>&1 | tee "$log"; then
  why=$(grep -m 1 -iE 'disruption budget|^error|cannot delete' "$log" || tail -n 1 "$log")
  [[ -n $patience ]] || give_up "node $node: $why"
  pods=$(staying)
  [[ -z $pods ]] || give_up "node $node: $why: $pods"
  echo 'the pods that are left were told to end: the reboot ends them'
fi
[[ -n $served ]] || exit 0
set_gpu_label "$node" drained
[[ -z $patience ]] || exit 0 # the device plugin may hang as the driver does
told=
while held=$(cards_held || echo 'what the API server does not tell') && [[ -n $held ]]; do
  if [[ $(seconds_left) -le 0 ]]; then
    set_gpu_label "$node" true
    give_up "node $node: pods do not end: $held"
  fi
  if [[ -z $told ]]; then
    waiting "the end of $held"
    told=yes
  fi
  pause
done
