#!/bin/bash
# A stand-in of the kgpu lab for nvidia-imex: without a list of other hosts it has nothing to do, and ends.
set -euo pipefail
grep -qs '^[0-9]' /etc/nvidia-imex/nodes_config.cfg || exit 0
exec sleep infinity
