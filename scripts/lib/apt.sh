# shellcheck shell=bash
# The package manager: waits for others, repairs a half state, remembers what comes.

# apt_holder prints who holds a lock of apt or dpkg, as "name (pid N)"; fails when nobody does.
apt_holder() {
  local lock inode pid where fd name arrow
  for lock in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock; do
    inode=$(stat -c %i "$lock" 2>/dev/null) || continue
    while read -r _ arrow _ _ pid where _; do
      [[ $arrow != '->' && ${where##*:} == "$inode" ]] || continue
      for fd in /proc/"$pid"/fd/*; do
        [[ $fd -ef $lock ]] || continue
        name='another program'
        read -r name <"/proc/$pid/comm" || true
        printf '%s (pid %s)\n' "$name" "$pid"
        return 0
      done
    done </proc/locks
  done
  return 1
}

# apt_wait returns when nobody holds the locks. It never ends the holder.
apt_wait() {
  local holder told=
  while holder=$(apt_holder); do
    [[ $(seconds_left) -gt 0 ]] || fail HOST_APT_LOCKED "$holder still holds the package manager"
    if [[ $holder != "$told" ]]; then
      waiting "the package manager, held by $holder"
      told=$holder
    fi
    sleep 2
  done
}

# apt_run ARG... runs apt-get; its last output stays in $apt_log.
apt_log=$KGPU_STEP/apt.log
apt_run() {
  env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none UCF_FORCE_CONFFOLD=1 \
    apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Use-Pty=0 -o Acquire::Retries=2 \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold --no-install-recommends "$@" \
    </dev/null 2>&1 | tee "$apt_log"
}

# apt_get ARG... does so when it is our turn, and tells the reason when it fails.
apt_get() {
  local repaired='' again=''
  while :; do
    apt_wait
    if apt_run "$@"; then return 0; fi
    if [[ -z $again ]] && apt_says "$apt_other_words" >/dev/null; then
      again=yes
      echo 'what came is not what the repository describes: getting it once more, past all caches'
      set -- -o Acquire::http::No-Cache=true "$@"
      continue
    fi
    if grep -qE '^E: Could not get lock|^E: Unable to (acquire|lock)' "$apt_log"; then continue; fi
    if [[ -z $repaired ]] && grep -q 'dpkg was interrupted' "$apt_log"; then
      repaired=yes
      dpkg_repair
      continue
    fi
    return 1
  done
}

# apt_failed WHAT ends the step after a failed apt_get.
apt_failed() {
  local line
  if line=$(apt_says '[Nn]o space left on device|not have enough free space'); then fail HOST_DISK_FULL "$1: $line"; fi
  if line=$(apt_says '/var/lib/dkms/nvidia.*make\.log'); then nvidia_build_failed "$1: $line"; fi
  apt_download_failed "$1"
  if line=$(apt_says 'NO_PUBKEY|(EXP|REV)KEYSIG|is not signed|Missing key|Signing-key'); then fail REPO_KEY_MISMATCH "$1: $line"; fi
  if line=$(apt_says 'Unable to locate package|has no installation candidate|^E: Version .* was not found'); then fail PACKAGE_MISSING "$1: $line"; fi
  if line=$(apt_says "$apt_fetch_errors"); then fail_transient REPO_UNREACHABLE "$1: $line"; fi
  fail STEP_FAILED "$1: $(apt_says '^E: ' || printf 'apt-get failed')"
}
apt_fetch_errors='(Failed|Unable) to fetch|Could not (resolve|connect|handshake)|Temporary failure|Connection (refused|timed out|failed)|does not have a Release file'

apt_says() {
  grep -m 1 -E "$1" "$apt_log"
}

# dpkg_repair finishes what a killed dpkg left half done.
dpkg_repair() {
  local line
  apt_wait
  echo 'dpkg was interrupted: finishing what it left'
  DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a </dev/null 2>&1 | tee "$apt_log" || {
    if line=$(apt_says '/var/lib/dkms/nvidia.*make\.log'); then nvidia_build_failed "dpkg --configure -a: $line"; fi
    fail HOST_DPKG_BROKEN 'dpkg --configure -a failed'
  }
}

# apt_update reads the package lists. A repository of somebody else that does not answer is no failure.
apt_update() {
  apt_get update || echo 'some repositories did not answer'
}

# apt_update_list FILE reads the package lists of this sources file only; fails unless all of it is there.
apt_update_list() {
  apt_get update -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 &&
    ! grep -qE "$apt_fetch_errors|^[WE]: GPG error|not signed" "$apt_log"
}

# apt_offers PACKAGE... tells whether apt has a candidate for each package.
apt_offers() {
  local package
  for package in "$@"; do
    grep -qE '^  Candidate: [^(]' <<<"$(apt-cache policy "$package" 2>/dev/null)" || return 1
  done
}

# installed PACKAGE[=VERSION] tells whether the package is installed, at this version if there is one.
installed() {
  local state
  state=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "${1%%=*}" 2>/dev/null) || return 1
  if [[ $1 == *=* ]]; then [[ $state == "installed ${1#*=}" ]]; else [[ $state == 'installed '* ]]; fi
}

# apt_versions PACKAGE prints the versions that apt offers, newest first.
apt_versions() {
  apt-cache madison "$1" 2>/dev/null | awk -F ' *[|] *' '{ print $2 }' | uniq
}

# apt_revision PACKAGE VERSION prints the newest revision of a version that apt offers.
apt_revision() {
  apt_versions "$1" | awk -v version="$2" 'index($0, version "-") == 1 && !found { found = $0 } END { print found }'
}

# apt_install PACKAGE[=VERSION]... installs those that are missing, and remembers all that comes with them.
apt_install() {
  local spec fresh=
  local -a want=()
  for spec in "$@"; do
    installed "$spec" || want+=("$spec")
  done
  [[ ${#want[@]} -gt 0 ]] || return 0
  if grep -qE '^(unpacked|half-|triggers-)' <<<"$(dpkg-query -W -f '${db:Status-Status}\n')"; then dpkg_repair; fi
  if ! apt_simulate "${want[@]}"; then
    apt_update
    fresh=yes
    apt_simulate "${want[@]}" || apt_failed "installing ${want[*]}"
  fi
  apt_record
  if ! apt_get install "${want[@]}"; then
    if [[ -n $fresh ]] || ! apt_says "$apt_fetch_errors" >/dev/null; then apt_failed "installing ${want[*]}"; fi
    apt_update
    apt_simulate "${want[@]}" || apt_failed "installing ${want[*]}"
    apt_record
    apt_get install "${want[@]}" || apt_failed "installing ${want[*]}"
  fi
}

# apt_install_version VERSION PACKAGE... installs packages at the newest revision of this version.
apt_install_version() {
  local version=$1 package revision
  local -a specs=()
  shift
  for package in "$@"; do
    revision=$(apt_revision "$package" "$version")
    if [[ -z $revision ]]; then
      apt_update
      revision=$(apt_revision "$package" "$version")
    fi
    [[ -n $revision ]] || fail PACKAGE_MISSING "$package $version is not offered; there are: $(apt_versions "$package" | paste -sd' ')"
    specs+=("$package=$revision")
  done
  apt_install "${specs[@]}"
}

# apt_install_first NAME installs the first set of packages, of those in the lines of the input called NAME, that is
# installed already or else that apt offers.
apt_install_first() {
  local set try
  local -a sets names
  mapfile -t sets < <(value_lines "$1")
  for set in "${sets[@]}"; do
    read -r -a names <<<"$set"
    if installed_all "${names[@]}"; then return 0; fi
  done
  for try in 1 2; do
    for set in "${sets[@]}"; do
      read -r -a names <<<"$set"
      if apt_offers "${names[@]}"; then
        apt_install "${names[@]}"
        return 0
      fi
    done
    if [[ $try == 1 ]]; then apt_update; fi
  done
  fail PACKAGE_MISSING "apt offers none of: $(value "$1" | tr '\n' ';')"
}

installed_all() {
  local package
  for package in "$@"; do
    installed "$package" || return 1
  done
}

# package_units PACKAGE... prints the units that come with packages.
package_units() {
  dpkg-query -L "$@" 2>/dev/null | sed -nE 's#^(/usr)?/lib/systemd/system/([^/@]+\.(service|socket|timer|path))$#\2#p'
}

# apt_simulate PACKAGE... asks apt what it would do; the answer is in $apt_log.
apt_simulate() {
  apt_wait
  apt-get -s -q --no-install-recommends install "$@" >"$apt_log" 2>&1
}

# apt_record remembers the packages that the simulation named. Nothing of the host's owner is ever removed.
apt_record() {
  local word package rest
  local -a coming=() upgraded=()
  while read -r word package rest; do
    case $word in
      Inst) if [[ $rest == \[* ]]; then upgraded+=("$package $rest"); else coming+=("$package"); fi ;;
      Remv) fail HOST_RUNTIME_CONFLICT "the packages wanted exclude the installed package $package" ;;
    esac
  done <"$apt_log"
  [[ ${#coming[@]} -gt 0 || ${#upgraded[@]} -gt 0 ]] || return 0
  entry_begin packages "${coming[@]}"
  if [[ ${#upgraded[@]} -gt 0 ]]; then printf '%s\n' "${upgraded[@]}" >"$entry/before/upgraded"; fi
  entry_commit
}

# hold PACKAGE... keeps packages at their version.
hold() {
  local package held
  held=$(apt-mark showhold)
  for package in "$@"; do
    grep -qxF "$package" <<<"$held" && continue
    record_once hold "$package"
    apt_wait
    apt-mark hold "$package" >/dev/null
  done
}
