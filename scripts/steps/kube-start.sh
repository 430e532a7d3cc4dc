#!/usr/bin/env bash
# Starts the kubelet of a node, which somebody stopped or keeps from starting at boot. What comes of it the steps see that follow. Where
# the membership was made by hand and taken over, whether it starts at boot is its owner's to say.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

systemctl reset-failed -- kubelet.service 2>/dev/null || true
if ledger_has adopted; then
  systemctl start -- kubelet.service || unit_failed kubelet.service
else
  unit_enable kubelet.service
fi
