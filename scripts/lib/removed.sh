# shellcheck shell=bash
# Packages that kgpu removes because others have to take their place: undo brings those back that were the host's own.

# driver_version PACKAGE prints the version of the driver that a package is a part of.
driver_version() {
  package_fields "$1" source:Upstream-Version
}

# driver_spread adds to gone what cannot stay without it and is a part of the same driver; fails where anything else would go.
driver_spread() {
  local package versions besides others added=yes
  versions=$(for package in "${gone[@]}"; do driver_version "$package"; done)
  while [[ -n $added ]]; do
    added='' others=''
    besides=$(undo_packages_others "${gone[@]}")
    for package in $besides; do
      if grep -qxF -- "$(driver_version "$package")" <<<"$versions"; then
        gone+=("$package")
        added=yes
      else
        others+=" $package"
      fi
    done
    [[ -z $others ]] || fail GPU_DRIVER_OTHER "without the driver that is there, these packages would have to go, too:$others"
  done
}

# remember_removed PACKAGE... records packages that are about to go: versions, holds, what was installed automatically, and
# their configuration.
remember_removed() {
  local package version path
  local -a specs=()
  for package in "$@"; do
    version=$(package_fields "$package" Version)
    specs+=("$package=$version")
  done
  entry_begin removed "${specs[@]}"
  mkdir "$entry/before/files"
  apt-mark showhold "$@" >"$entry/before/held"
  apt-mark showauto "$@" >"$entry/before/auto"
  while read -r path _; do
    if [[ -f $path ]]; then cp -a --parents "$path" "$entry/before/files"; fi
  done < <(dpkg-query -W -f '${Conffiles}\n' "$@")
  entry_commit
}

# undo_removed NAME=VERSION... installs what kgpu removed, as far as it can still be had. It is the last that knows of these
# packages: where tomorrow may have what today has not, it ends the step and the entry stays.
undo_removed() {
  local spec path
  local -a back=()
  if ! installed_all "$@"; then apt_update; fi
  for spec in "$@"; do
    if removed_offered "$spec"; then
      back+=("$spec")
    elif [[ -n $apt_unanswered && -z $(apt_versions "${spec%%=*}") ]]; then # whoever offers others of it has answered
      fail_transient REPO_UNREACHABLE "bringing back ${spec/=/ }: $apt_unanswered"
    else
      undo_left "package ${spec/=/ }, which another driver replaced: it is not offered any more"
    fi
  done
  [[ ${#back[@]} -gt 0 ]] || return 0
  if ! apt_get install --allow-downgrades "${back[@]}"; then
    if apt_says "$apt_fetch_errors|[Nn]o space left on device" >/dev/null; then apt_failed "bringing back ${back[*]}"; fi
    undo_left "the packages ${back[*]}, which another driver replaced: $(apt_says '^E: ' || printf 'apt-get failed')"
    return
  fi
  removed_mark auto "$before/auto"
  removed_mark hold "$before/held"
  while IFS= read -r path; do
    make_way "/${path%/*}"
    put_back "$before/files/$path" "/$path"
  done < <(find "$before/files" -type f -printf '%P\n')
}

removed_offered() {
  installed "$1" || grep -qxF -- "${1#*=}" <<<"$(apt_versions "${1%%=*}")"
}

# removed_mark MARK FILE gives those packages their mark again that are back.
removed_mark() {
  local package
  while IFS= read -r package; do
    if installed "$package"; then apt_mark "$1" "$package"; fi
  done <"$2"
}
