#!/usr/bin/env bash
# Installs cri-dockerd, through which the kubelet talks to docker. Values: url, sha256, version.
# Files: cri-docker.service, cri-docker.socket.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

binary=/usr/local/bin/cri-dockerd
claim_tree /var/lib/cri-dockerd /run/cri-dockerd.sock
if [[ ! -x $binary || $("$binary" --version 2>&1) != *" $(value version) "* ]]; then
  fetch "$(value url)" "$KGPU_STEP/cri-dockerd.tgz" "$(value sha256)"
  tar -xzf "$KGPU_STEP/cri-dockerd.tgz" -C "$KGPU_STEP" cri-dockerd/cri-dockerd
  put_file "$binary" 755 <"$KGPU_STEP/cri-dockerd/cri-dockerd"
  rm -rf "$KGPU_STEP/cri-dockerd" "$KGPU_STEP/cri-dockerd.tgz"
fi
install_files
if [[ ${#changed_files[@]} -gt 0 ]]; then systemctl daemon-reload; else units_reload cri-docker.service cri-docker.socket; fi
if unit_outdated cri-docker.service; then unit_restart cri-docker.socket cri-docker.service; fi
unit_enable cri-docker.socket cri-docker.service
