# shellcheck shell=bash
# What a killed dpkg left: unpacked, half installed or half configured packages, and its journal.

# dpkg_broken prints the packages that are neither installed nor away.
dpkg_broken() {
  dpkg-query -W -f '${db:Status-Status} ${db:Status-Eflag} ${Package}\n' 2>/dev/null |
    awk '$1 ~ /^(unpacked|half-|triggers-)/ || $2 != "ok" { print $3 }'
}

# dpkg_torn prints those whose files are not all there: they have to be unpacked again.
dpkg_torn() {
  dpkg-query -W -f '${db:Status-Status} ${db:Status-Eflag} ${Package}\n' 2>/dev/null |
    awk '$1 == "half-installed" || $2 != "ok" { print $3 }'
}

# dpkg_pending tells whether dpkg has something to finish, or has told more than came to the disk.
dpkg_pending() {
  [[ -n $(find /var/lib/dpkg/updates -name '[0-9]*' -print -quit) || -n $(dpkg_broken) ]] || unsettled_before
}

# The boot, and the packages, a line each ("upgraded" after one that was there before), whose files are not on the disk for sure. dpkg
# syncs each file under another name, and its own word for the package; between them comes the rename, which waits for the journal. It
# syncs no configuration. Where /var is a file system of its own, or none has a journal that orders all (btrfs), a power cut leaves
# packages that count as installed and lack files.
unsettled=/var/lib/kgpu/unsettled

# unsettled_begin LINE... notes, as durably, packages that are about to be unpacked. The end of a step takes the note away.
unsettled_begin() {
  [[ -s $unsettled ]] || cat /proc/sys/kernel/random/boot_id >"$unsettled"
  printf '%s\n' "$@" >>"$unsettled"
  sync -d "$unsettled" "${unsettled%/*}"
}

# unsettled_before tells whether the host went down since the note was begun.
unsettled_before() {
  of_former_boot "$unsettled"
}

# of_former_boot NOTE tells whether there is a note whose first line is another boot than this one.
of_former_boot() {
  local boot
  [[ -s $1 ]] || return 1
  read -r boot <"$1" || return 1
  [[ $boot != "$(</proc/sys/kernel/random/boot_id)" ]]
}

# settle_step ends a step: what it did is on the disk, and so are the packages and images in the notes, unless a note is of a former
# boot and nobody has looked at them yet.
settle_step() {
  drop_unfinished
  settle / 'it is to be done again'
  unsettled_before || rm -f "$unsettled"
  images_torn || rm -f "$unsettled_images"
}

# drop_unfinished removes the files that apt and the scripts of packages were writing when they were killed, of the time since kgpu first
# changed this host: they write a file under a random name and rename it then (apt's FileFd, File::Temp of deb-systemd-helper), and nobody
# looks at such a file again. What is written at this moment stays.
drop_unfinished() {
  local file
  local -a entries=("$ledger"/[0-9]*/kind)
  [[ -f ${entries[0]} ]] || return 0
  { find /var/lib/apt /var/cache/apt /var/lib/systemd/deb-systemd-helper-{enabled,masked} -maxdepth 1 -type f \
    '(' -name 'extended_states.??????' -o -name '*pkgcache.bin.??????' -o -name '.state?????.tmp' ')' \
    -newer "${entries[0]}" ! -newermt '1 second ago' 2>/dev/null || true; } | while IFS= read -r file; do
    is_open "$file" || rm -f "$file"
  done
}

# is_open FILE tells whether a process has a file open.
is_open() {
  local fd
  for fd in /proc/[0-9]*/fd/*; do
    if [[ $fd -ef $1 ]]; then return; fi
  done
  return 1
}

# dpkg_drop_empty takes away the configuration files that packages in the note were about to get, and that a power cut left empty: dpkg
# would take them for what the packages bring. The note has these packages as "torn" then: they are to be unpacked once more.
dpkg_drop_empty() {
  local package file
  tail -n +2 "$unsettled" | cut -d' ' -f1 | sort -u | while read -r package; do
    { dpkg-query -W -f '${Conffiles}\n' "$package" 2>/dev/null || true; } | sed -nE 's#^ (/.*) (newconffile|[0-9a-f]{32})( .*)?$#\1#p' | while IFS= read -r file; do
      if [[ ! -f $file.dpkg-new || -s $file.dpkg-new ]]; then continue; fi
      unsettled_begin "$package torn"
      rm "$file.dpkg-new"
    done
  done
}

# dpkg_lost prints the files that a power cut took of packages in the note that are installed, each after its package.
dpkg_lost() {
  local package was file
  tail -n +2 "$unsettled" | sort -u | while read -r package was; do
    installed "$package" || continue
    dpkg --verify "$package" 2>/dev/null | sed -nE 's#^[^ ]+ +(c )?(/.*)$#\1\2#p' | while IFS= read -r file; do
      if is_lost "$file" "$was"; then printf '%s %s\n' "$package" "${file#c }"; fi
    done
  done
}

# is_lost FILE WAS tells whether a power cut took a file, which has a c before it if it is the owner's to change. What the owner may have
# changed or removed, or has dpkg leave out (pages and translations), is no loss, unless dpkg was about to put it there.
is_lost() {
  local file=${1#c }
  if [[ -e $file.dpkg-new ]]; then return 0; fi
  if [[ $file =~ ^/usr/share/(doc|man|info|locale|help|lintian)/ ]]; then return 1; fi
  [[ $file == "$1" || (-z $2 && ! -s $file) ]]
}

# dpkg_restore unpacks once more what a power cut took of packages that count as installed.
dpkg_restore() {
  local lost package file
  local -a packages
  lost=$(dpkg_lost)
  mapfile -t packages < <({ cut -d' ' -f1 <<<"$lost"; sed -n 's/ torn$//p' "$unsettled"; } | grep . | sort -u)
  if [[ ${#packages[@]} -gt 0 ]]; then
    echo "the host went down before all files of ${packages[*]} were on the disk: unpacking them again"
    while read -r package file; do
      if [[ -n $file && ! -s $file ]]; then rm -f "$file"; fi # dpkg keeps one that is there and the owner's
    done <<<"$lost"
    dpkg_unpack_again -o Dpkg::Options::=--force-confmiss "${packages[@]}"
    lost=$(dpkg_lost)
    [[ -z $lost ]] || fail HOST_DPKG_BROKEN "files of packages are lost: $(paste -sd, <<<"$lost"): $(dpkg_error "$apt_log")"
  fi
  settle / 'packages are to be looked at again'
  rm -f "$unsettled"
}

dpkg_configure() {
  DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a </dev/null 2>&1 | tee "$apt_log"
}

# dpkg_repair finishes what dpkg left, whoever ran it; what does not let itself be finished is refused by its name.
dpkg_repair() {
  local broken line
  local -a torn
  echo 'dpkg was interrupted: finishing what it left'
  if unsettled_before; then dpkg_drop_empty; fi
  when_free dpkg_configure || true # what is torn fails here, and is mended below
  cp "$apt_log" "$KGPU_STEP/configure.log"
  mapfile -t torn < <(dpkg_torn)
  if [[ ${#torn[@]} -gt 0 ]]; then dpkg_unpack_again "${torn[@]}"; fi
  if [[ -n $(dpkg_broken) ]]; then dpkg_complete; fi
  broken=$(dpkg_broken | paste -sd' ')
  if [[ -z $broken ]]; then
    if unsettled_before; then dpkg_restore; fi
    return 0
  fi
  if line=$(dpkg_said 'No space left on device'); then fail HOST_DISK_FULL "finishing an interrupted installation: $line"; fi
  if line=$(dpkg_said '/var/lib/dkms/nvidia.*make\.log'); then nvidia_build_failed "dpkg --configure -a: $line"; fi
  fail HOST_DPKG_BROKEN "$broken: $(dpkg_error "$KGPU_STEP/configure.log" "$apt_log")"
}

# dpkg_said PATTERN prints the first line that dpkg, or then apt, said of it.
dpkg_said() {
  grep -hE -- "$1" "$KGPU_STEP/configure.log" "$apt_log" | sed -n 1p # reads on to the end: a pipe that breaks is a failure, too
}

# dpkg_error FILE... prints the first error of dpkg with what it says about it, or else apt's.
dpkg_error() {
  local text
  text=$(sed -nE '/^dpkg: error/{N;s/\n */ /;p;q}' "$@")
  [[ -n $text ]] || text=$(sed -n '/^E: /{p;q}' "$@")
  printf '%s\n' "${text:-it ended badly}"
}

# dpkg_unpack_again [-o OPTION] PACKAGE... has apt fetch packages once more. They are whose they were: nothing is recorded, and nothing
# else is removed for them.
dpkg_unpack_again() {
  apt_simulate --reinstall "$@" || { apt_update && apt_simulate --reinstall "$@"; } || return 0
  if apt_says '^Remv ' >/dev/null; then return 0; fi
  if [[ $1 != -o ]]; then unsettled_begin "$@"; fi
  apt_get install --reinstall "$@" || true
}

# dpkg_complete has apt fetch what packages that are unpacked need and lack: a full disk kept it away, perhaps. What comes is
# recorded, and nothing is removed for it.
dpkg_complete() {
  local line
  apt_simulate --fix-broken || { apt_update && apt_simulate --fix-broken; } || return 0
  if apt_says '^Remv ' >/dev/null || ! apt_says '^Inst ' >/dev/null; then return 0; fi
  apt_record
  if when_free apt_run install --fix-broken "${change_held[@]}"; then return 0; fi
  if line=$(apt_says "$apt_fetch_errors"); then fail_transient REPO_UNREACHABLE "finishing an interrupted installation: $line"; fi
}

# dpkg_drop_torn purge|remove PACKAGE does so to a package whose files are not all there: apt would want to fetch it first.
dpkg_drop_torn() {
  dpkg --force-remove-reinstreq "--$1" "$2" </dev/null 2>&1 | tee "$apt_log"
}
