#!/usr/bin/env bash
# Installs NVIDIA's driver and holds it. Values: packages (name or name=version, a line each), headers (the same, for
# the kernels that a module is built for), version_package (the one whose version is the driver's), next (what brings the
# modules of kernels to come, where it is offered), line (the running kernel's, with which those names end: generic-64k), ways (how
# the packages can be had, best first, where there is more than one way: lines of scripts/lib/driver-ways.sh, of which the first that
# is one decides), besides (packages of ways that come later).
# Files: apt.conf.d.
# Output: version.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t packages < <(value_lines packages)
mapfile -t headers < <(value_lines headers)
mapfile -t next < <(value_lines next)
mapfile -t ways < <(value_lines ways)
mapfile -t besides < <(value_lines besides)
version_package=$(value version_package)

# missing SPEC... prints the first package that is not there and that apt does not offer, or not at this version.
missing() {
  local spec versions
  for spec in "$@"; do
    if installed "$spec"; then continue; fi
    if [[ $spec == *=* ]]; then
      versions=$(apt_versions "${spec%%=*}")
      if grep -qxF -- "${spec#*=}" <<<"$versions"; then continue; fi
    elif apt_offers "$spec"; then
      continue
    fi
    printf '%s\n' "$spec"
    return
  done
}

# offered SPEC prints what apt has instead: other versions of the package, or else packages of this kind.
offered() {
  local name=${1%%=*} list
  list=$(apt_versions "$name")
  if [[ -z $list ]]; then list=$(apt-cache pkgnames "$(sed -E 's/-[0-9].*//' <<<"$name")" | sort -rV); fi
  head -n 12 <<<"${list:-nothing}" | paste -sd' '
}

# want SPEC... fails unless apt offers all these.
want() {
  local lacks
  lacks=$(missing "$@")
  [[ -n $lacks ]] || return 0
  apt_update
  lacks=$(missing "$@")
  [[ -z $lacks ]] || refuse_missing "$lacks is not offered; there is: $(offered "$lacks")" "${lacks%%=*}"
}

# choose takes the first way of ways that is one, and says which and why. The ways: scripts/lib/driver-ways.sh.
of_kernel=$(uname -r)
choose() {
  local way detail=''
  local -a words
  [[ ${#ways[@]} -gt 0 ]] || return 0
  apt_wait
  read -r -a words <<<"${ways[0]}"
  way_fits "${words[@]}" || apt_update # the lists may be old, or not there yet
  for way in "${ways[@]}"; do
    read -r -a words <<<"$way"
    if way_fits "${words[@]}"; then
      take "${words[0]}" "$detail"
      return
    fi
    detail+="${detail:+; }$(way_words "${words[0]}"): $way_said"
  done
  read -r -a words <<<"${ways[0]}"
  refuse_pinned "$detail" "${words[@]:3}"
  refuse_late "$detail"
  fail GPU_NO_MODULES "$detail"
}

# way_words WAY says what a way is.
way_words() {
  case $1 in
    built) printf 'modules built for kernel %s' "$of_kernel" ;;
    newer) printf 'the newest kernel of its line' ;;
    dkms) printf 'modules built here by DKMS' ;;
  esac
}

# take WAY WHY makes way_packages the packages. What the modules need comes before them: the kernel, or headers.
take() {
  local spec
  if [[ $1 != built ]]; then waiting "$(way_words "$1")${2:+, for there is no other way: $2}"; fi
  if [[ $1 == dkms ]]; then next=("linux-headers-$(value line)"); fi
  packages=() of_kernel=$way_kernel
  for spec in "${way_packages[@]}"; do
    if [[ " ${besides[*]} " == *" ${spec%%=*} "* ]]; then continue; fi
    case $spec in
      linux-headers-* | linux-image-* | linux-modules-extra-*) headers+=("$spec") ;;
      *) packages+=("$spec") ;;
    esac
  done
}

claim_group nvidia-persistenced
claim_user nvidia-persistenced
# dkms makes a key of its own, for Secure Boot.
claim_tree /var/lib/dkms /var/lib/shim-signed /var/lib/shim-signed/mok
for kernel in /lib/modules/*/; do
  [[ -d $kernel ]] || continue
  claim_dir "${kernel}updates" "${kernel}updates/dkms"
done
nvidia_claim install
install_files
choose
want "${headers[@]}"
apt_install "${headers[@]}"
# The pinning package decides what the names of the others mean.
for spec in "${packages[@]}"; do
  [[ $spec == nvidia-driver-pinning-* ]] || continue
  want "$spec"
  apt_install "$spec"
done
want "${packages[@]}"
apt_install "${packages[@]}"
hold "${packages[@]%%=*}"
for spec in "${next[@]}"; do
  spec=$(of_its_line "$(value line)" "$spec")
  if installed "$spec" || ! apt_offers "$spec"; then continue; fi
  # Modules come with the kernel that they are for, but not with the rest of it: network drivers may be missing then.
  if apt_simulate "$spec" && apt_says '^Inst linux-(image|modules-[0-9])' >/dev/null; then
    echo "$spec is left out: it would bring another kernel than the one that runs"
  else
    apt_install "$spec"
  fi
done

installed "$version_package" || fail STEP_FAILED "$version_package did not come with the driver"
version=$(driver_version "$version_package")
module=$(nvidia_module_file "$of_kernel") || nvidia_build_failed "kernel $of_kernel has no nvidia module"
[[ $module == "$version" ]] || nvidia_build_failed "the nvidia module of kernel $of_kernel is $module, $version_package is $version"
output version <<<"$version"
echo "driver $version"
