#!/usr/bin/env bash
# Moves the pods away from a node before it goes. Values: node, timeout (5m).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
if ! node_there "$node"; then
  echo "there is no node $node"
  exit 0
fi
kube drain "$node" --ignore-daemonsets "$(local_data)" --force --timeout "$(value_or timeout 5m)" ||
  fail STEP_FAILED "node $node cannot be drained"
