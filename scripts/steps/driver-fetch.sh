#!/usr/bin/env bash
# Downloads a driver that is to take the place of another one, which still does its work: nothing is removed before apt has said that
# it would install this one instead, and has all of it here. Values: gone (packages that are to go, a name a line), branch, and
# packages, headers, ways as driver-install has them.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t gone < <(value_lines gone)
mapfile -t packages < <(value_lines packages)
mapfile -t headers < <(value_lines headers)
mapfile -t ways < <(value_lines ways)
branch=$(value branch)

# prefer makes apt prefer versions as it will with the pinning package of the branch, without that of another.
prefer() {
  local file spec
  mkdir -p "$KGPU_STEP/preferences"
  for file in /etc/apt/preferences.d/*; do
    [[ ! -f $file || $file == */nvidia-driver-pin* ]] || cp "$file" "$KGPU_STEP/preferences"
  done
  for spec in "${headers[@]}"; do
    [[ $spec == nvidia-driver-pinning-* ]] || continue
    printf 'Package: *nvidia* libcuda* cuda-drivers*\nPin: version %s.*\nPin-Priority: 1000\n' "$branch" >"$KGPU_STEP/preferences/nvidia-driver-pin"
  done
  printf 'Dir::Etc::PreferencesParts "%s";\nAPT::Get::allow-downgrades "true";\n' "$KGPU_STEP/preferences" >"$KGPU_STEP/apt.conf"
  export APT_CONFIG=$KGPU_STEP/apt.conf
}

# replaces tells whether apt would install the driver in the place of what goes; way_packages has all that, and why the rest.
replaces() {
  local name way spec
  local -a words going=() specs=()
  for spec in "${headers[@]}" "${packages[@]}"; do
    [[ $spec == nvidia-driver-pinning-* ]] || specs+=("$spec")
  done
  for name in "${gone[@]}"; do
    [[ " ${specs[*]%%=*} " == *" $name "* ]] || going+=("$name-")
  done
  why=''
  for way in "${ways[@]}"; do
    read -r -a words <<<"$way"
    if way_fits "${words[@]}" "${going[@]}"; then return 0; fi
    why+="${why:+; }$way_said"
  done
  if [[ ${#ways[@]} -eq 0 ]]; then
    if way_simulate "${specs[@]}" "${going[@]}"; then return 0; fi
    why=$way_said
  fi
  return 1
}

for i in "${!gone[@]}"; do
  installed "${gone[i]}" || unset "gone[i]"
done
if [[ ${#gone[@]} -eq 0 ]]; then exit 0; fi

driver_spread
prefer
apt_wait
if ! replaces; then
  apt_update
  if ! replaces; then
    refuse_late "$why"
    [[ -z $apt_unanswered ]] || fail_transient REPO_UNREACHABLE "$why; $apt_unanswered"
    fail GPU_DRIVER_STAYS "$why"
  fi
fi
apt_get install --download-only --reinstall --allow-change-held-packages "${way_packages[@]}" || apt_failed 'downloading the driver'
if line=$(apt_says '^Reinstallation of .* is not possible'); then fail GPU_DRIVER_STAYS "$line"; fi
