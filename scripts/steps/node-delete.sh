#!/usr/bin/env bash
# Deletes a node from the cluster. Values: node.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
valid_nodes "$node"
wait_api
kube delete node "$node" --ignore-not-found || fail_transient API_UNREACHABLE "kubectl delete of node $node failed"
