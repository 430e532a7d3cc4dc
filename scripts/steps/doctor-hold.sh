#!/usr/bin/env bash
# Holds packages again that kgpu held. Values: packages.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t packages < <(value_lines packages)
for package in "${packages[@]}"; do
  ledger_has hold "$package" || fail STEP_FAILED "kgpu never held $package"
done
hold "${packages[@]}"
