# shellcheck shell=bash
# The package manager: waits for others, repairs a half state, remembers what comes.

# How many seconds apt waits for a server that says nothing, and how many it may take in all; 0: as many as the step.
apt_silence=20 apt_limit=0
# The sources files whose lists did not come in time, a blank before each; what a repository that did not answer was about; and what
# apt said of those that it cannot read, with their files.
apt_late=
apt_unanswered=
apt_unread=

# apt_run ARG... runs apt-get; its last output stays in $apt_log, without passwords that sources have in their addresses, and
# its status in $apt_status.
apt_log=$KGPU_STEP/apt.log
apt_status=0
apt_run() {
  apt_status=0
  # What the owner has apt do with new lists (search indexes, notes for the desktop) can wait for the owner's own updates.
  printf '#clear APT::Update::%s;\n' Post-Invoke Post-Invoke-Success Post-Invoke-Stats >"$KGPU_STEP/apt-run.conf"
  env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none APT_LISTBUGS_FRONTEND=none \
    UCF_FORCE_CONFFOLD=1 timeout --foreground -k 5 "$apt_limit" apt-get -c "$KGPU_STEP/apt-run.conf" -q -y \
    -o DPkg::Lock::Timeout=5 -o Dpkg::Use-Pty=0 -o Acquire::Retries=2 \
    -o Acquire::http::Timeout="$apt_silence" -o Acquire::https::Timeout="$apt_silence" -o Acquire::ftp::Timeout="$apt_silence" \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold --no-install-recommends "$@" \
    </dev/null 2>&1 | without_passwords | tee "$apt_log" || apt_status=$?
  return "$apt_status"
}

without_passwords() {
  sed -u -E 's#://[^/@ ]*@#://#g'
}

# apt_get ARG... does so when it is our turn.
apt_get() {
  if when_free apt_run "$@" || apt_hook_after; then return 0; fi
  refuse_config
  refuse_hook "apt-get $1"
  if apt_says "$apt_other_words" >/dev/null; then
    echo 'what came is not what the repository describes: getting it once more, past all caches'
    if when_free apt_run -o Acquire::http::No-Cache=true "$@"; then return 0; fi
  fi
  if ! apt_says 'dpkg was interrupted' >/dev/null; then return 1; fi
  dpkg_repair
  when_free apt_run "$@"
}

# apt_failed WHAT ends the step after a failed program of apt.
apt_failed() {
  local line
  if line=$(apt_says '[Nn]o space left on device|not have enough free space'); then fail HOST_DISK_FULL "$1: $line"; fi
  if line=$(apt_says '/var/lib/dkms/nvidia.*make\.log'); then nvidia_build_failed "$1: $line"; fi
  refuse_config
  refuse_hook "$1"
  if line=$(apt_says '^E: The package .* needs to be reinstalled|dpkg was interrupted'); then fail HOST_DPKG_BROKEN "$1: ${line#E: }"; fi
  if line=$(apt_says '^E: Unmet dependencies'); then fail HOST_DPKG_BROKEN "$1: there are broken dependencies: $(apt_dependencies | paste -sd';')"; fi
  apt_download_failed "$1"
  if line=$(apt_says "$apt_key_expired"); then fail REPO_KEY_EXPIRED "$1: $line"; fi
  if line=$(apt_says 'NO_PUBKEY|REVKEYSIG|is not signed|Missing key|Signing-key'); then fail REPO_KEY_MISMATCH "$1: $line"; fi
  if line=$(apt_says 'Unable to locate package|has no installation candidate|^E: Version .* was not found'); then
    # shellcheck disable=SC2046 # names
    refuse_pinned "$1" $(sed -nE "s/^E: Package '?([^' ]+)'? has no installation candidate.*/\1/p" "$apt_log")
    refuse_late "$1"
    fail PACKAGE_MISSING "$1: $line$apt_unread"
  fi
  if line=$(apt_says "$apt_fetch_errors"); then
    refuse_source "$1: $line" "$line"
    fail_transient REPO_UNREACHABLE "$1: $line"
  fi
  if line=$(apt_says '^E: Unable to correct problems'); then refuse_dependencies "$1"; fi
  fail STEP_FAILED "$1: $(dpkg_error "$apt_log")"
}
apt_fetch_errors='(Failed|Unable) to fetch|Could not (resolve|connect|handshake)|Temporary failure|Connection (refused|timed out|failed)|does not have a Release file'

# A key that had expired when the signature was looked at (gpgv), or made (sqv, of apt 3).
apt_key_expired='EXPKEYSIG|KEYEXPIRED|Expired on [0-9]'

apt_says() {
  grep -m 1 -E "$1" "$apt_log"
}

# apt_update reads the package lists. A repository of somebody else that does not answer is no failure; $apt_unanswered says
# what apt said of it, unless it will not answer tomorrow either.
apt_update() {
  local status=0 file share=half
  local -a files=()
  apt_late='' apt_unanswered='' apt_unread=''
  apt_drop_torn
  apt_limited half apt_get update || status=$?
  if apt_says "$apt_key_expired" >/dev/null; then
    key_renew
    if [[ -n $key_renewed ]]; then
      status=0
      apt_limited half apt_get update || status=$?
    fi
  fi
  if [[ $status == 0 ]] && ! apt_says "$apt_fetch_errors" >/dev/null; then return 0; fi
  apt_unanswered=$(grep -E "$apt_fetch_errors" "$apt_log" | grep -vE -m 1 'does not have a Release file| 404 |NO_PUBKEY|KEYSIG') || true
  echo 'some repositories did not answer, kgpu goes on with the others:'
  grep -E '^[WE]: ' "$apt_log" || true
  apt_unread=$(apt_unread_words)
  if ! apt_ended && apt_says "^E: |$apt_fetch_errors" >/dev/null; then return 0; fi
  apt_unanswered='a repository does not come to an end'
  # One that never comes to an end: apt, which was ended, keeps nothing of what it had of the others.
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    if [[ -s $file ]]; then files+=("$file"); fi
  done
  for file in "${files[@]}"; do
    if [[ $file == "${files[-1]}" ]]; then share=most; fi
    apt_limited "$share" apt_update_list "$file" && continue
    echo "$file was left out"
    if apt_ended; then apt_late+=" $file"; fi
  done
}

# apt_drop_torn removes package lists that a power cut left empty: apt syncs none, and fetches none again that is there as long as the
# repository has not changed.
apt_drop_torn() {
  find /var/lib/apt/lists -maxdepth 1 -type f -empty ! -name lock -delete 2>/dev/null || true
}

# apt_ended tells whether apt was ended because its time was over.
apt_ended() {
  [[ $apt_status == 124 || $apt_status == 137 ]]
}

# apt_limited half|most COMMAND... runs a program of apt, which gets half of the time that is left, or three quarters.
apt_limited() {
  local left status=0
  left=$(seconds_left)
  apt_limit=$((left > 8 ? left / 2 : 4))
  if [[ $1 == most && $((left * 3 / 4)) -gt $apt_limit ]]; then apt_limit=$((left * 3 / 4)); fi
  "${@:2}" || status=$?
  apt_limit=0
  return "$status"
}

# apt_update_list FILE reads the package lists of this sources file only; fails unless all of it is there.
apt_update_list() {
  apt_drop_torn
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

# package_fields PACKAGE FIELD... prints what dpkg knows of a package: where its name has no architecture, of the host's own.
package_fields() {
  local native format architecture fields
  printf -v format " \${%s}" "${@:2}"
  if [[ $1 == *:* ]]; then native='*'; else native=$(dpkg --print-architecture); fi
  while read -r architecture fields; do
    # shellcheck disable=SC2053 # the right side is meant as a pattern
    if [[ $architecture == all || $architecture == $native ]]; then printf '%s\n' "$fields"; fi
  done < <(dpkg-query -W -f "\${Architecture}$format\n" "$1" 2>/dev/null)
  wait $!
}

# installed PACKAGE[=VERSION] tells whether the package is installed, at this version if there is one.
installed() {
  local state
  state=$(package_fields "${1%%=*}" db:Status-Status Version) || return 1
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
  if dpkg_pending; then dpkg_repair; fi
  if ! apt_simulate "${want[@]}"; then
    apt_update
    fresh=yes
    apt_simulate "${want[@]}" || apt_failed "installing ${want[*]}"
  fi
  apt_record
  if ! apt_get install "${change_held[@]}" "${want[@]}"; then
    if [[ -n $fresh ]] || ! apt_says "$apt_fetch_errors" >/dev/null; then apt_failed "installing ${want[*]}"; fi
    apt_update
    apt_simulate "${want[@]}" || apt_failed "installing ${want[*]}"
    apt_record
    apt_get install "${change_held[@]}" "${want[@]}" || apt_failed "installing ${want[*]}"
  fi
}

# apt_install_version VERSION PACKAGE... installs packages at the newest revision of this version; one that is there has it.
apt_install_version() {
  local version=$1 package revision
  local -a specs=()
  shift
  for package in "$@"; do
    if [[ $(package_fields "$package" db:Status-Status Version) == "installed $version-"* ]]; then continue; fi
    revision=$(apt_revision "$package" "$version")
    if [[ -z $revision ]]; then
      apt_update
      revision=$(apt_revision "$package" "$version")
    fi
    [[ -n $revision ]] || refuse_missing "$package $version is not offered; there are: $(apt_versions "$package" | paste -sd' ')"
    specs+=("$package=$revision")
  done
  if [[ ${#specs[@]} -gt 0 ]]; then apt_install "${specs[@]}"; fi
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
  mapfile -t names < <(value_lines "$1" | tr ' ' '\n')
  refuse_missing "apt offers none of: $(value_lines "$1" | paste -sd';')" "${names[@]}"
}

installed_all() {
  local package
  for package in "$@"; do
    installed "$package" || return 1
  done
}

# packages_of_kgpu prints the packages that came with kgpu, as the ledger says.
packages_of_kgpu() {
  local number
  for number in $(ledger_find packages); do cat "$ledger/$number/args"; done
}

came_with_kgpu() { grep -qxF -- "$1" <<<"$(packages_of_kgpu)"; }

# package_units PACKAGE... prints the units that come with packages.
package_units() {
  dpkg-query -L "$@" 2>/dev/null | sed -nE 's#^(/usr)?/lib/systemd/system/([^/@]+\.(service|socket|timer|path))$#\2#p'
}

# apt_simulate PACKAGE... asks apt what it would do; the answer is in $apt_log.
apt_simulate() {
  apt_wait
  apt-get -s -q --no-install-recommends install "$@" 2>&1 | without_passwords >"$apt_log"
}

# apt_record remembers the packages that the simulation named. Nothing of the host's owner is ever removed.
apt_record() {
  local word package rest
  local -a coming=() upgraded=()
  refuse_newer
  refuse_held
  while read -r word package rest; do
    case $word in
      Inst) if [[ $rest == \[* ]]; then upgraded+=("$package $rest"); else coming+=("$package"); fi ;;
      Remv) fail HOST_RUNTIME_CONFLICT "the packages wanted exclude the installed package $package" ;;
    esac
  done <"$apt_log"
  [[ ${#coming[@]} -gt 0 || ${#upgraded[@]} -gt 0 ]] || return 0
  entry_begin packages "${coming[@]}"
  if [[ ${#upgraded[@]} -gt 0 ]]; then printf '%s\n' "${upgraded[@]}" >"$entry/before/upgraded"; fi
  remember_kept "${coming[@]}"
  entry_commit
  unsettled_begin "${coming[@]}" "${upgraded[@]/%\ */ upgraded}"
}

# hold PACKAGE... keeps packages at their version.
hold() {
  local package held
  held=$(apt-mark showhold)
  for package in "$@"; do
    grep -qxF "$package" <<<"$held" && continue
    record_once hold "$package"
    apt_mark hold "$package"
  done
}

# apt_mark MARK PACKAGE changes a mark when it is our turn.
apt_mark() {
  when_free apt_mark_run "$@" || apt_failed "apt-mark $*"
}

apt_mark_run() {
  apt-mark "$@" >"$apt_log" 2>&1
}
