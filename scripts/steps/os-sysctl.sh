#!/usr/bin/env bash
# Sets sysctls now and at boot. Files: sysctl.d.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

install_files
while IFS= read -r file; do
  apply_sysctls "$file"
done < <(find "$KGPU_STEP/files" -type f)
