#!/usr/bin/env bash
# Removes a driver so that another can take its place: its programs stop, its modules leave the kernel if nothing uses a
# card, and its packages go. Values: packages (a name a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t gone < <(value_lines packages)

# remember records what undo has to bring back; what kgpu brought itself it only forgets.
remember() {
  local package unit module
  local -a theirs=()
  for package in "${gone[@]}"; do
    came_with_kgpu "$package" || theirs+=("$package")
  done
  [[ ${#theirs[@]} -gt 0 ]] || return 0
  while IFS= read -r unit; do
    remember_unit "$unit"
  done < <(package_units "${theirs[@]}")
  if ! ledger_has nvidia; then
    for module in "${nvidia_modules[@]}"; do
      if [[ -d /sys/module/$module ]]; then record_once unloaded "$module"; fi
    done
  fi
  remember_removed "${theirs[@]}"
}

# A step that was cut short may have removed some.
for i in "${!gone[@]}"; do
  installed "${gone[i]}" || unset "gone[i]"
done
if [[ ${#gone[@]} -eq 0 ]]; then exit 0; fi

driver_spread
remember
# Whatever driver is in the kernel from now on is there because of kgpu.
record_once nvidia remove
undo_package_units "${gone[@]}"
nvidia_away || echo "the modules stay in the kernel for now, they are in use by: $(nvidia_users)"
apt_get purge --allow-change-held-packages "${gone[@]}" || apt_failed "purging ${gone[*]}"
