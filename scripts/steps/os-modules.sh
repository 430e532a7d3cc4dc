#!/usr/bin/env bash
# Loads kernel modules now and at boot. Values: modules (a line each). Files: modules-load.d.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t modules < <(value_lines modules)
load_module "${modules[@]}"
install_files
