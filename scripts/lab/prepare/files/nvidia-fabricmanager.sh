#!/bin/bash
# A stand-in of the kgpu lab for nv-fabricmanager and the script that starts it: it wants switches and the driver's own version, and
# starts nvlsm where the switches are those of NVLink 5. nvidia-smi looks for the pid files.
set -euo pipefail
ours=@VERSION@
run=/run/nvidia-fabricmanager

if grep -q ^bridge /etc/kgpu-lab/gpu-cards; then
  if ! command -v ibstat >/dev/null; then
    echo 'ibstat: command not found' >&2
    exit 1
  fi
  if ! ibstat -l | grep -q . || [[ ! -d /sys/module/ib_umad ]]; then
    echo 'Detected NVL5+ system, and there is no Infiniband device with ib_umad' >&2
    exit 1
  fi
  if ! command -v nvlsm >/dev/null; then
    echo 'NVLSM is not installed' >&2
    exit 1
  fi
elif [[ ! -e /proc/driver/nvidia-nvswitch/devices ]]; then
  echo 'request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]' >&2
  exit 1
fi
read -r loaded </sys/module/nvidia/version
if [[ $loaded != "$ours" ]]; then
  echo "fabric manager NVIDIA GPU driver interface version $ours don't match with driver version $loaded. Please update with matching NVIDIA driver package." >&2
  exit 1
fi
mkdir -p "$run"
if command -v nvlsm >/dev/null; then
  nvlsm &
  echo "$!" >"$run/nvlsm.pid"
fi
echo "$$" >"$run/nv-fabricmanager.pid"
systemd-notify --ready
exec sleep infinity
