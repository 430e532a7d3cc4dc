#!/usr/bin/env bash
# Takes the member of a control plane that is lost out of etcd. Values: node, address.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

etcd_forget "$(value node)" "$(value address)"
