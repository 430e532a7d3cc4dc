#!/usr/bin/env bash
# Gives the proxy to apt and to the container runtimes. Files: apt.conf.d, systemd drop-ins.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

install_files
systemctl daemon-reload
for unit in containerd docker cri-docker; do
  if unit_outdated "$unit.service"; then unit_restart "$unit.service"; fi
done
