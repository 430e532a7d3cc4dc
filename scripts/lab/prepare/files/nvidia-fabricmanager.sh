#!/bin/bash
# A stand-in of the kgpu lab for nv-fabricmanager: it wants NVSwitches and the driver's own version.
set -euo pipefail
ours=@VERSION@

if [[ ! -e /proc/driver/nvidia-nvswitch/devices ]]; then
  echo 'request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]' >&2
  exit 1
fi
read -r loaded </sys/module/nvidia/version
if [[ $loaded != "$ours" ]]; then
  echo "fabric manager NVIDIA GPU driver interface version $ours don't match with driver version $loaded. Please update with matching NVIDIA driver package." >&2
  exit 1
fi
systemd-notify --ready
exec sleep infinity
