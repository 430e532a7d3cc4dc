# shellcheck shell=bash
# Packages that were removed before kgpu came, and their configuration kept: it is their owner's, and stays when they go again.

# remember_kept PACKAGE... puts the configuration of those of these that are so into the entry that is begun.
remember_kept() {
  local package path
  grep -qxF config-files <<<"$(dpkg-query -W -f '${db:Status-Status}\n' 2>/dev/null)" || return 0
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == config-files ]] || continue
    mkdir -p "$entry/before/kept/$package"
    while read -r path _; do
      for path in "$path"{,.dpkg-dist}; do
        if [[ -f $path && ! -L $path ]]; then cp -a --parents "$path" "$entry/before/kept/$package"; fi
      done
    done < <(dpkg-query -W -f '${Conffiles}\n' "$package")
  done
}

# was_kept PACKAGE tells whether a package of the entry that is undone was so.
was_kept() {
  [[ -d $before/kept/$1 ]]
}

# undo_kept puts back what newer versions, or their scripts, made of the configuration. A file that is neither what was there nor
# what the package brought was edited since.
undo_kept() {
  local copies path sum
  local -A brought
  for copies in "$before"/kept/*; do
    if [[ ! -d $copies ]] || installed "${copies##*/}"; then continue; fi
    brought=()
    while read -r path sum _; do
      if [[ $path == /* ]]; then brought[$path]=$sum brought[$path.dpkg-dist]=$sum; fi
    done < <(dpkg-query -W -f '${Conffiles}\n' "${copies##*/}" 2>/dev/null)
    while IFS= read -r path; do
      if [[ -f $path ]]; then read -r sum _ < <(md5sum <"$path"); else sum=; fi
      if [[ -L $path ]] || cmp -s "$copies$path" "$path"; then
        continue
      elif [[ -n $sum && $sum != "${brought[$path]:-}" ]]; then
        undo_left "$path was edited since kgpu installed ${copies##*/}"
      elif [[ -f $copies$path ]]; then
        make_way "${path%/*}"
        put_back "$copies$path" "$path"
      else
        rm -f "$path"
      fi
    done < <({ find "$copies" -type f -printf '/%P\n' && printf '%s\n' "${!brought[@]}"; } | sed '/^$/d' | sort -u)
  done
}
