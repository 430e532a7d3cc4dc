#!/usr/bin/env bash
# Sets sysctls now and at boot. Files: sysctl.d.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# The files come last: a boot that finds them sets the values, and nobody would know what they were.
while IFS= read -r file; do
  apply_sysctls "$file"
done < <(find "$KGPU_STEP/files" -type f)
install_files
