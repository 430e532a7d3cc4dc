# shellcheck shell=bash
# Swap in all its forms: active spaces, fstab, units of every origin, services that make swap.
swap_mark='# off while kgpu runs Kubernetes here: '

# swap_off turns swap off now and at the next boot.
swap_off() {
  local name prio unit state
  while read -r name _ _ _ prio; do
    [[ $name == /* ]] || continue
    record_once swap "$(printf '%b' "$name")" "$prio"
  done </proc/swaps
  for unit in zramswap.service zram-config.service dphys-swapfile.service swapspace.service; do
    if [[ $(unit_property "$unit" LoadState) == loaded ]]; then unit_off "$unit"; fi
  done
  fstab_swap_off
  systemctl daemon-reload
  while read -r unit state _; do
    [[ $unit == *.swap && $state != masked ]] || continue
    unit_off "$unit"
  done < <(systemctl list-unit-files --type=swap --plain --no-legend)
  swapoff -a
  if [[ $(wc -l </proc/swaps) -gt 1 ]]; then fail HOST_SWAP_ON "still on: $(tail -n +2 /proc/swaps)"; fi
}

# fstab_swap_off comments the swap lines of fstab; undo takes the comment mark away again, whatever else was edited.
fstab_swap_off() {
  [[ -f /etc/fstab ]] || return 0
  # shellcheck disable=SC2016 # the fields are awk's
  rewrite /etc/fstab awk -v mark="$swap_mark" \
    '!/^[[:blank:]]*#/ && $3 == "swap" && ("," $4 ",") !~ /,noauto,/ { $0 = mark $0 } { print }'
}

fstab_swap_on() {
  [[ -f /etc/fstab ]] || return 0
  # shellcheck disable=SC2016 # the fields are awk's
  rewrite /etc/fstab awk -v mark="$swap_mark" 'index($0, mark) == 1 { $0 = substr($0, length(mark) + 1) } { print }'
}

# rewrite PATH FILTER... replaces a file by what the filter makes of it, in one rename, mode and owner kept.
rewrite() {
  local path=$1 new=$new_file
  shift
  mkdir -p "${new%/*}"
  "$@" <"$path" >"$new"
  if cmp -s "$path" "$new"; then
    rm -f "$new"
    return
  fi
  if [[ $path == /etc/fstab ]]; then record_once fstab-swap; fi
  cp -a "$path" "$path.kgpu-new"
  cat "$new" >"$path.kgpu-new"
  sync -d "$path.kgpu-new"
  mv -f "$path.kgpu-new" "$path"
}
