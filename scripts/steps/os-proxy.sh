#!/usr/bin/env bash
# Gives the proxy to apt and to the container runtimes. Files: apt.conf.d, systemd drop-ins.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

install_files
systemctl daemon-reload
for runtime in containerd docker; do
  if unit_outdated "$runtime.service"; then runtime_restart "$runtime"; fi
done
if unit_outdated cri-docker.service; then unit_restart cri-docker.service; fi
