# shellcheck shell=bash
# What apt can really install of a driver on this host. A name in the package lists is no promise: modules that come built are
# made for one kernel and one version of the driver, and the lists may have a part of them only. So a simulated installation of all
# packages at one version decides. Nothing here writes, or reads what is not in /, for scripts other than steps use it too.

# A way to a driver is a line of words: its name, the package whose version is the driver's, what names the newest kernel of the
# running one's line and its modules (-: the way is for the kernel that runs), and the packages. One that ends with a dash goes.

way_options=()  # of apt's programs
way_packages=() # of the last way that was tried: all packages, those of the driver with its version
way_kernel=''   # the kernel that it is for
way_said=''     # why it is none

# way_fits WAY LIBRARY META PACKAGE... tells whether this is a way, with the newest version that is one.
way_fits() {
  local library=$2 meta=$3 version offers said=''
  local -a parts=("${@:4}")
  way_kernel=$(uname -r) way_said=''
  if [[ $meta != - ]]; then way_newer "$meta" || return 1; fi
  offers=$(way_offers)
  for version in $(way_versions "$library"); do
    if way_version "$version" && way_simulate; then return 0; fi
    said=${said:-$way_said}
  done
  way_said=${said:-$library is not offered}
  return 1
}

# way_offers prints name and version of all that is installed or offered of parts, newest first.
way_offers() {
  dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' "${parts[@]}" 2>/dev/null | sed -n 's/ installed$//p' || true
  apt-cache "${way_options[@]}" madison "${parts[@]}" 2>/dev/null | awk -F ' *[|] *' '{ sub(/^ +/, ""); print $1, $2 }' || true
}

# way_versions PACKAGE prints its versions: the one that is installed, the one that apt prefers, then the others, newest first.
# It prints nothing where a pin keeps them all away.
way_versions() {
  local policy
  policy=$(apt-cache "${way_options[@]}" policy "$1" 2>/dev/null | sed -nE 's/^  (Installed|Candidate): ([^(].*)/\2/p')
  [[ -z $policy ]] || { printf '%s\n' "$policy" && sed -n "s/^$1 //p" <<<"$offers"; } | awk '!seen[$0]++'
}

# way_version VERSION gives the driver's packages among parts this version; those that follow a kernel have that one's.
way_version() {
  local upstream=${1%%-*} name full
  way_packages=()
  for name in "${parts[@]}"; do
    full=$name
    if [[ $name != linux-* && $name != *- ]]; then
      full=$(awk -v name="$name" -v version="$upstream-" '$1 == name && index($2, version) == 1 { print $2; exit }' <<<"$offers")
      if [[ -z $full ]]; then
        way_said="$name $upstream is not offered"
        return 1
      fi
      full=$name=$full
    fi
    way_packages+=("$full")
  done
}

# way_newer META makes parts those for the newest kernel that has modules, or headers to build them, and adds that kernel.
way_newer() {
  local running=$way_kernel line meta prefix='' name newest i
  line=$(sed -E 's/^([0-9][^-]*-)+//' <<<"$running")
  meta=$(of_its_line "$line" "$1")
  for name in "${parts[@]}"; do
    if [[ $name == *"-$running" ]]; then prefix=${name%"$running"}; fi
  done
  way_kernel=$(apt-cache "${way_options[@]}" show --no-all-versions "$meta" 2>/dev/null | sed -nE '/^Depends:/{s/.*[ ,]'"$prefix"'([0-9][^ ,|]*).*/\1/p}')
  if [[ -z $prefix || -z $way_kernel ]]; then
    way_said="$meta is not offered"
    return 1
  fi
  newest=$(printf '%s\n' "$running" "$way_kernel" /boot/vmlinuz-[0-9]*"-$line" | sed 's#^/boot/vmlinuz-##; /\*/d' | sort -V | tail -n 1)
  if [[ $way_kernel == "$running" || $newest != "$way_kernel" ]]; then
    way_said="$meta is for kernel $way_kernel, and the next boot would start $newest"
    return 1
  fi
  for i in "${!parts[@]}"; do parts[i]=${parts[i]/%"-$running"/"-$way_kernel"}; done
  parts+=("linux-image-$way_kernel")
  for name in linux-modules-extra linux-headers; do
    if grep -q '^installed' <<<"$(dpkg-query -W -f '${db:Status-Status}' "$name-$running" 2>/dev/null)"; then parts+=("$name-$way_kernel"); fi
  done
}

# of_its_line LINE PACKAGE prints the package of this kind for the line of kernels that the host follows: linux-headers-generic
# is linux-headers-generic-hwe-24.04 where that line's kernels are installed.
of_its_line() {
  local image
  image=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "linux-image-$1-hwe-*" 2>/dev/null | sed -n '/^installed /{s///p;q}') || true
  image=${image:-linux-image-$1}
  printf '%s%s\n' "${2%"$1"}" "${image#linux-image-}"
}

# way_simulate [PACKAGE...] tells whether apt would install these, or way_packages, and take nothing away but what is to go. apt takes no other version of
# what these need than the newest: it has to be told.
way_simulate() {
  local said='' first='' tries word package
  if [[ $# -gt 0 ]]; then way_packages=("$@"); fi
  for tries in 1 2 3 4 5 6 7 8; do
    if said=$(timeout 60 apt-get "${way_options[@]}" -s -q --allow-change-held-packages --no-install-recommends install "${way_packages[@]}" 2>&1 </dev/null); then break; fi
    first=${first:-$(way_complaint <<<"$said")}
    package=$(sed -nE '/ Depends: [^ ]+ \(= [^)]+\) but /{s/.* Depends: ([^ ]+) \(= ([^)]+)\).*/\1=\2/p;q}' <<<"$said")
    if [[ $tries == 8 || -z $package || " ${way_packages[*]} " == *" ${package%%=*}"[=\ ]* ]]; then
      way_said=$first
      return 1
    fi
    way_packages+=("$package")
  done
  while read -r word package _; do
    if [[ $word == Remv && " ${way_packages[*]} " != *" $package- "* ]]; then
      way_said="$package would have to go"
      return 1
    fi
  done <<<"$said"
}

# way_complaint prints the line of apt's answer that says what is wrong.
way_complaint() {
  awk '/^E: (Unable to locate|Package .* has no|Version )/ { found = substr($0, 4); exit }
    !found && /: (Pre-)?(Depends|Conflicts|Breaks): / { sub(/^ +/, ""); gsub(/ +/, " "); found = $0 }
    /^E: / { last = substr($0, 4) }
    END { print found ? found : last ? last : "apt does not answer" }'
}
