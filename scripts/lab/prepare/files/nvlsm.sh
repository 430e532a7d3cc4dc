#!/bin/bash
# A stand-in of the kgpu lab for nvlsm: it wants the kernel's way to the switches.
set -euo pipefail
if [[ ! -d /sys/module/ib_umad ]]; then
  echo 'nvlsm: cannot open /dev/infiniband/umad0' >&2
  exit 1
fi
exec sleep infinity
