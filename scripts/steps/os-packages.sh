#!/usr/bin/env bash
# Installs the packages that the other steps and the kubelet need. Values: packages (a line each).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t packages < <(value_lines packages)
apt_install "${packages[@]}"
