#!/usr/bin/env bash
# Tells what gpu-feature-discovery finds out about the cards of this host, once it has seen the driver that is loaded.
# Output: features (a line key=value for each label that it wants for the node).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

features=/etc/kubernetes/node-feature-discovery/features.d/gfd
loaded=$(nvidia_loaded) || fail GPU_DRIVER_MISSING 'the driver is not loaded'
until grep -qsxF "nvidia.com/cuda.driver-version.full=$loaded" "$features"; do
  if [[ $(seconds_left) -le 0 ]]; then
    if [[ -f $features ]]; then cat "$features" >&2; fi
    fail STEP_FAILED "gpu-feature-discovery does not tell of the cards with driver $loaded: kubectl -n kube-system logs ds/nvidia-device-plugin -c gpu-feature-discovery"
  fi
  if [[ -z ${told:-} ]]; then
    waiting 'gpu-feature-discovery'
    told=yes
  fi
  sleep 1
done
output features <"$features"
