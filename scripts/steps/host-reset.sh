#!/usr/bin/env bash
# Takes this host out of its cluster and undoes everything that kgpu changed. Values: criSocket.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

if ledger_has kubeadm || ledger_has cni-mute; then leave_cluster "$(value criSocket)"; fi
undo_all
rm -rf /var/lib/kgpu/kube-cache
# The runner removes /var/lib/kgpu as its last act.
: >/var/lib/kgpu/forget
