#!/usr/bin/env bash
# Deletes a node from the cluster. Values: node.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

wait_api
kube delete node "$(value node)" --ignore-not-found
