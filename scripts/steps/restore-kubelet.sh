#!/usr/bin/env bash
# Restarts the kubelet of a node whose cluster was restored: it asks for its pods anew, and ends those that the cluster does not know.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

systemctl reset-failed kubelet.service 2>/dev/null || true
systemctl restart kubelet.service || unit_failed kubelet.service
