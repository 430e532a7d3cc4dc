#!/bin/bash
# A stand-in of the kgpu lab for nvidia-persistenced: it holds the driver while it runs.
set -euo pipefail
users=/sys/module/nvidia/refcnt
run=/run/nvidia-persistenced

if [[ ! -e $users ]]; then
  echo 'nvidia-persistenced: Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist.' >&2
  exit 1
fi
hold() { echo $(($(<"$users") + $1)) >"$users"; }
release() {
  hold -1
  rm -r "$run"
}
mkdir -p "$run"
echo $$ >"$run/nvidia-persistenced.pid"
hold 1
trap release EXIT
trap 'exit 0' TERM INT
systemd-notify --ready
sleep infinity &
wait
