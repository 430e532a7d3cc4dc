# shellcheck shell=bash
# What is not kgpu's to decide: holds, pins, hooks, sources and files of apt's configuration that their owner wrote.

apt_config_errors='^E: (Malformed (entry|line|stanza)|Type .* is not known|Conflicting values set for option|Syntax error|Invalid record in the preferences|Did not understand pin type|The list of sources could not be read|Opening configuration file|Unable to parse (the )?(package file|sources))'

# refuse_config ends the step when apt gave up because it does not understand its own configuration.
refuse_config() {
  local line address
  line=$(apt_says "$apt_config_errors") || return 0
  # Of an address apt does not say where it is written.
  address=$(sed -nE 's/.* regarding source [a-z+]+:([^ ]+) .*/\1/p' <<<"$line")
  if [[ -n $address ]]; then line+=" ($(apt_sources_with "$address" | paste -sd' '))"; fi
  fail HOST_APT_CONFIG "${line#E: }"
}

# refuse_sources FILE ends the step when apt does not take a sources file.
refuse_sources() {
  refuse_config
  fail HOST_APT_CONFIG "$1: $(dpkg_error "$apt_log")"
}

# apt_sources prints the files of apt's sources that apt reads: others than those with such names it passes over.
apt_sources() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    if [[ -f $file && ${file##*/} =~ ^[A-Za-z0-9_.-]+$ ]]; then printf '%s\n' "$file"; fi
  done
}

# apt_repositories FILE prints what apt makes of a sources file: a line for each list that it would fetch, with the repository, the
# suite, the repository's address as it is written, and where the list is kept. apt tells repositories apart by their addresses
# without scheme and password. It fails where apt does, whose words are in $apt_log then.
apt_repositories() {
  local said
  said=$({
    apt-get indextargets --no-release-info -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- \
      --format $'$(REPO_URI)\t$(RELEASE)\t$(FILENAME)' 2>&1 >&3 | without_passwords >"$apt_log"
  } 3>&1) || return 1
  awk -F '\t' -v OFS='\t' '
    NF == 3 { bare = $1; sub(/^[^:]*:(\/\/([^\/@]*@)?)?/, "", bare); print bare, $2 == "" ? "/" : $2, $1, $3 }' <<<"$said"
}

# apt_beside TRIAL LIST makes the folder $apt_beside what /etc/apt would be with the sources file TRIAL at LIST, of links.
apt_beside=$KGPU_STEP/apt
apt_beside() {
  local file
  mkdir -p "$apt_beside/sources.list.d"
  for file in $(apt_sources); do ln -sfn "$file" "$apt_beside/${file#/etc/apt/}"; done
  ln -sfn "$1" "$apt_beside/${2#/etc/apt/}"
}

# apt_takes_beside LIST ends the step where apt would take none of its sources any more with what is in that folder.
apt_takes_beside() {
  apt-get indextargets --no-release-info -o Dir::Etc::sourcelist="$apt_beside/sources.list" \
    -o Dir::Etc::sourceparts="$apt_beside/sources.list.d" 2>&1 >/dev/null | without_passwords >"$apt_log" || refuse_sources "$1"
}

# apt_sources_with ADDRESS prints the files of apt's sources that name this repository, and those that apt does not take by
# themselves.
apt_sources_with() {
  local file said address=${1#*//}
  address=${address#*@}
  for file in $(apt_sources); do
    if ! said=$(apt_repositories "$file") || cut -f 1 <<<"$said" | grep -xF -- "${address%/}/" >/dev/null; then
      printf '%s\n' "$file"
    fi
  done
}

# apt_where WORDS prints where apt's sources have the repository that apt speaks of, as FILE:NUMBER (of a line, or of an entry in
# deb822).
apt_where() {
  apt-get indextargets --no-release-info --format $'$(SOURCESENTRY)\t$(REPO_URI)' 2>/dev/null | without_passwords |
    words=$1 awk -F '\t' '
      { sub(/\/+$/, "", $2); at = index(ENVIRON["words"], $2) }
      at && length($2) > best && substr(ENVIRON["words"], at + length($2), 1) ~ /[ \/]/ { best = length($2); where = $1 }
      END { if (best) print where }' || true
}

# refuse_source WHAT WORDS ends the step when apt speaks of a source that is on this host, or in it: no network leads there.
refuse_source() {
  local where
  where=$(apt_where "$2")
  if [[ -z $where || $where == */kgpu* || $2 =~ (^|[ \'+])(https?|ftp):// ]]; then return 0; fi
  fail HOST_APT_SOURCE "$1 ($where)"
}

# apt_unread_words prints what apt said of sources that it cannot read, and where these are, to be put behind what is missing.
apt_unread_words() {
  local line where
  while IFS= read -r line; do
    where=$(apt_where "$line")
    printf '; %s%s' "${line#[EW]: }" "${where:+ ($where)}"
  done < <(grep -E "^[EW]: .*($apt_fetch_errors|method .* (is unsupported|could not be found))|GPG error" "$apt_log" | head -n 3)
}

# What apt and dpkg say of programs that their configuration has them run.
apt_hook_words="^E: (Problem executing scripts|Failure running (script|hook)) |^dpkg: .*error executing hook"

# apt_hook_after tells whether apt failed by nothing but a program that it runs when the work is done.
apt_hook_after() {
  local line
  line=$(apt_says "^E: Problem executing scripts (DPkg|APT::Install)::Post-Invoke") || return 1
  if grep '^E: ' "$apt_log" | grep -vE "$apt_hook_words|^E: Sub-process returned an error code" >/dev/null; then return 1; fi
  echo "${line#E: }$(apt_hook_files "$line"): apt had done its work before, kgpu goes on"
}

# refuse_hook WHAT ends the step when a program that the owner has apt or dpkg run is why they gave up.
refuse_hook() {
  local line words
  line=$(apt_says "$apt_hook_words") || return 0
  words=$(sed '/^E: /Q' "$apt_log" | grep -E '^(/bin/)?sh: |[Ee]rror:' | grep -v '^dpkg: ' | tail -n 1) || true
  fail HOST_APT_HOOK "$1: ${line#E: }${words:+: $words}$(apt_hook_files "$line")"
}

# apt_hook_files LINE prints the files that have the program of which apt or dpkg complains, as " (FILE FILE)".
apt_hook_files() {
  local files program=${1#*running script }
  program=${program#*running hook }
  if [[ $program == *\'*\'* ]]; then
    program=${program#*\'}
    program=${program%\'*}
  fi
  program=${program##[\\\"]} # apt leaves out quotes of what it runs
  files=$(grep -lsF -- "${program%%[\\\"]*}" /etc/apt/apt.conf{,.d/*} /etc/dpkg/dpkg.cfg{,.d/*} | paste -sd' ') || true
  printf '%s' "${files:+ ($files)}"
}

# apt_dependencies prints the dependencies that apt could not satisfy, as "kubelet: Depends: conntrack but …".
apt_dependencies() {
  awk '/^ [^ ]+ : / { package = $1 } /^ +([^ ]+ : | +)(Pre-)?(Depends|Conflicts|Breaks|Recommends): / {
    sub(/^ +([^ ]+ : )?[[:blank:]]*/, ""); print package ": " $0 }' "$apt_log"
}

# refuse_dependencies WHAT ends the step when packages cannot have what they depend on, and says what keeps it away.
refuse_dependencies() {
  local all name held
  all=$(apt_dependencies)
  held=$(apt-mark showhold)
  while read -r name; do
    if grep -qxF -- "$name" <<<"$held"; then
      fail HOST_PACKAGE_HELD "$1: $name is held at $(dpkg-query -W -f '${Version}' "$name"): ${all//$'\n'/; }"
    fi
    refuse_pinned "$1" "$name"
  done < <(sed -nE 's/^[^:]*: (Pre-)?Depends: ([^ :]+).*/\2/p' <<<"$all")
  refuse_late "$1"
  fail STEP_FAILED "$1: ${all//$'\n'/; }"
}

# refuse_newer reads the simulation's answer: no package is replaced by an older one.
refuse_newer() {
  local word package rest have want
  while read -r word package rest; do
    [[ $word == Inst && $rest == \[* ]] || continue
    have=${rest#\[} want=${rest#*(}
    have=${have%%]*} want=${want%% *}
    if dpkg --compare-versions "$want" lt "$have"; then fail HOST_PACKAGE_NEWER "$package is $have, which is newer than the $want that kgpu wants"; fi
  done <"$apt_log"
}

# refuse_held reads the simulation's answer: what somebody else holds does not change. It sets $change_held when holds
# of kgpu's own have to give way.
refuse_held() {
  local word package rest held
  change_held=()
  held=$(apt-mark showhold)
  [[ -n $held ]] || return 0
  while read -r word package rest; do
    [[ $word == Inst ]] || continue
    grep -qxF -- "$package" <<<"$held" || continue
    if ledger_has hold "$package"; then
      change_held=(--allow-change-held-packages)
      continue
    fi
    [[ $rest == \[* ]] || fail HOST_PACKAGE_HELD "$package is held, so that nobody installs it"
    rest=${rest#\[}
    fail HOST_PACKAGE_HELD "$package is held at ${rest%%]*}, kgpu wants $(sed -E 's/^[^(]*\(([^ )]+).*/\1/' <<<"$rest")"
  done <"$apt_log"
}

# refuse_missing WHAT PACKAGE... ends the step because apt does not offer packages, and says what keeps them away if
# anything does.
refuse_missing() {
  apt-cache policy 2>&1 | without_passwords >"$apt_log" || refuse_config
  refuse_pinned "$@"
  refuse_late "$1"
  fail PACKAGE_MISSING "$1$apt_unread"
}

# refuse_late WHAT ends the step when package lists did not come in time, or apt refuses them for an expired key of kgpu's own
# repositories: what is missing may be in them.
refuse_late() {
  [[ -z $key_dead ]] || fail REPO_KEY_EXPIRED "$1; the key of$key_dead has expired, and what was fetched is no better"
  [[ -z $apt_late ]] || fail_transient REPO_UNREACHABLE "$1; the package lists of$apt_late did not come in time"
}

# refuse_pinned WHAT PACKAGE... ends the step when apt does not offer a package because of a pin.
refuse_pinned() {
  local what=$1 package policy file
  shift
  for package in "$@"; do
    policy=$(apt-cache policy "$package" 2>/dev/null)
    # A version that could be had, and is not the candidate.
    grep -qE '^ {5,}[^ *]|^ \*\*\*' <<<"$policy" || continue
    file=$(pin_files "$package" | paste -sd' ')
    [[ -n $file ]] || continue
    fail HOST_PACKAGE_PINNED "$what: a pin keeps $package at $(sed -nE 's/^  Candidate: //p' <<<"$policy"): $file"
  done
}

# pin_files PACKAGE prints the files of apt's preferences that have a word about a package: those that forbid it, or else
# those that prefer a version of it.
pin_files() {
  local file patterns pin priority pattern
  local -a forbid=() prefer=()
  while IFS=$'\t' read -r file patterns pin priority; do
    for pattern in $patterns; do
      # shellcheck disable=SC2053 # the right side is meant as a pattern
      [[ $1 == $pattern ]] || continue
      if [[ $priority -lt 0 ]]; then forbid+=("$file"); elif [[ $pin == version* ]]; then prefer+=("$file"); fi
    done
  done < <(set -f && pin_stanzas)
  if [[ ${#forbid[@]} -gt 0 ]]; then prefer=("${forbid[@]}"); fi
  [[ ${#prefer[@]} -eq 0 ]] || printf '%s\n' "${prefer[@]}" | sort -u
}

# pin_stanzas prints the entries of apt's preferences: file, packages, pin, priority.
pin_stanzas() {
  find /etc/apt/preferences /etc/apt/preferences.d -maxdepth 1 -type f -exec awk -v RS= -v FS='\n' -v OFS='\t' '{
    package = pin = priority = ""
    for (i = 1; i <= NF; i++) {
      value = $i
      sub(/^[^:]*:[[:blank:]]*/, "", value)
      name = tolower($i)
      if (name ~ /^package:/) package = value
      if (name ~ /^pin:/) pin = value
      if (name ~ /^pin-priority:/) priority = value + 0
    }
    if (package != "") print FILENAME, package, pin, priority
  }' {} + 2>/dev/null
}
