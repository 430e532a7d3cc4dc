#!/usr/bin/env bash
# Starts units that are down. Nothing that lasts changes: the ledger knows the units that are kgpu's. Values: units.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t units < <(value_lines units)
for unit in "${units[@]}"; do
  systemctl reset-failed -- "$unit" 2>/dev/null || true
  verb=restart
  # Whoever started one of these meanwhile has containers in it.
  case $unit in kubelet.service | containerd.service | docker.service | cri-docker.service) verb=start ;; esac
  systemctl "$verb" -- "$unit" || unit_failed "$unit"
  echo "$unit: $(unit_property "$unit" ActiveState)"
done
