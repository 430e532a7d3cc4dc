#!/usr/bin/env bash
# Installs containerd, its configuration in place before its first start. Values: packages (a set a line; the first set
# that apt offers is taken). Files: /etc/containerd.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

claim_containers
install_files
apt_install_first packages
# What counts is what containerd reads, not what was written.
containerd_rules
if unit_outdated containerd.service; then runtime_restart containerd; fi
unit_enable containerd.service

plugins=$(ctr plugins list)
grep -qE 'io\.containerd\.grpc\.v1 +cri .* ok' <<<"$plugins" || {
  grep -i cri <<<"$plugins" >&2 || true
  fail STEP_FAILED 'containerd runs without its CRI plugin'
}
