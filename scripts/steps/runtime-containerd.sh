#!/usr/bin/env bash
# Installs containerd, its configuration in place before its first start. Values: packages (a set a line; the first set
# that apt offers is taken). Files: /etc/containerd.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

claim_containers
install_files
apt_install_first packages
if unit_outdated containerd.service; then runtime_restart containerd; fi
unit_enable containerd.service

# What counts is what containerd read, not what was written.
loaded=$(containerd config dump)
grep -q 'SystemdCgroup = true' <<<"$loaded" || fail STEP_FAILED 'containerd does not use the systemd cgroup driver: is its configuration imported?'
plugins=$(ctr plugins list)
grep -qE 'io\.containerd\.(grpc|cri)\.v1 +(cri|runtime|images) .* ok' <<<"$plugins" || {
  grep -i cri <<<"$plugins" >&2 || true
  fail STEP_FAILED 'containerd runs without its CRI plugin'
}
