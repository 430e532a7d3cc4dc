#!/usr/bin/env bash
# Adds a package repository whose key is checked. Values: name, key_url (a line each; the next where the key of one has
# expired), fingerprint (a line each; any may match), keyring, list, line, preferences (a file), packages (a line each; what
# is wanted from there, as apt's patterns), optional (yes: a suite that is not there is no failure). Files: preferences.d, if
# any.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

keyring=$(value keyring)
list=$(value list)
line=$(value line)

# lists_prefix prints how apt's package lists of a deb line begin.
lists_prefix() {
  local url suite
  read -r url suite _ < <(sed -E 's/^deb +(\[[^]]*\] *)?//' <<<"$line")
  url=$(sed -E 's#^[a-z]+://([^/@]*@)?##; s#/+$##; s#_#%5f#g; s#/#_#g' <<<"$url")
  if [[ $suite == / ]]; then printf '%s_\n' "$url"; else printf '%s_dists_%s_\n' "$url" "${suite//\//_}"; fi
}

# is_own tells whether this repository is among what apt makes of sources, in standard input.
is_own() {
  cut -f 1,2 | grep -xF -- "$own" >/dev/null
}

# give_way FILE prints what becomes of a sources file whose entries for this repository go out of use: apt refuses two keys for one.
# What such an entry has beyond that stays: other repositories as they were, more of this one with the key that is checked.
give_way() {
  local text block=''
  while IFS= read -r text || [[ -n $text ]]; do
    if [[ $1 == *.list ]]; then
      entry_way list "$text"
    elif [[ -n ${text//$'\r'/} ]]; then
      block+=${block:+$'\n'}$text
    else
      if [[ -n $block ]]; then entry_way sources "$block"; fi
      block=''
      printf '%s\n' "$text"
    fi
  done <"$1"
  if [[ -n $block ]]; then entry_way sources "$block"; fi
}

# entry_way KIND ENTRY prints what becomes of an entry: a line of a list, or a paragraph of deb822.
entry_way() {
  local kind=$1 text=$2 lists more repository suite address
  printf '%s\n' "$text" >"$KGPU_STEP/entry.$kind"
  if ! lists=$(apt_repositories "$KGPU_STEP/entry.$kind") || ! is_own <<<"$lists"; then
    printf '%s\n' "$text"
    return
  fi
  more=$(awk -F '\t' -v own="$own" '$1 FS $2 == own { print $4 }' <<<"$lists" | grep -vxFf <(cut -f 4 <<<"$own_lists")) || true
  if [[ $kind == list ]]; then
    printf '# %s\n' "$text"
    if [[ -n $more ]]; then checked_line "$text"; fi
    return
  fi
  grep -viE '^enabled[[:blank:]]*:' <<<"$text"
  echo 'Enabled: no'
  while IFS=$'\t' read -r repository suite address; do
    if [[ $repository$'\t'$suite != "$own" ]]; then
      printf '\n%s\n' "$(fields 0 'enabled|uris|suites' <<<"$text")"
    elif [[ -n $more ]]; then
      printf '\n%s\nSigned-By: %s\n' "$(fields 1 'types|components|architectures|languages|targets' <<<"$text")" "$keyring"
    else
      continue
    fi
    printf 'URIs: %s\nSuites: %s\n' "$address" "$suite"
  done < <(cut -f 1-3 <<<"$lists" | sort -u)
}

# fields 1|0 NAMES prints an entry of deb822 with these fields only, or without them.
fields() {
  awk -v shown="$1" -v names="^($2)[ \t]*:" '/^#/ { next } /^[^ \t]/ { show = (tolower($0) ~ names) == shown } show'
}

# checked_line LINE prints a line of a list with the key that is checked, and what else it says of what to fetch.
checked_line() {
  local option options kept=''
  [[ $1 =~ ^[[:blank:]]*(deb|deb-src)[[:blank:]]+(\[([^]]*)\])?[[:blank:]]*(.*)$ ]]
  read -r -a options <<<"${BASH_REMATCH[3]}"
  for option in "${options[@]}"; do
    if [[ $option == @(arch|lang|target)* ]]; then kept+=" $option"; fi
  done
  printf '%s [signed-by=%s%s] %s\n' "${BASH_REMATCH[1]}" "$keyring" "$kept" "${BASH_REMATCH[4]}"
}

# was_there tells whether apt had this repository before kgpu: an entry of somebody else gave way to the new one.
was_there() {
  local number file
  for number in $(ledger_find file); do
    read -r file <"$ledger/$number/args"
    if [[ $file != /etc/apt/sources.list* || $file == "$list" || ! -f $ledger/$number/before/file ]]; then continue; fi
    cp "$ledger/$number/before/file" "$KGPU_STEP/before.${file##*.}"
    if apt_repositories "$KGPU_STEP/before.${file##*.}" | is_own; then return 0; fi
  done
  return 1
}

# targets ARG... prints what apt knows of its package lists.
targets() {
  apt-get indextargets "$@" 'Identifier: Packages' 2>/dev/null || true
}

# pin_for FILE prints how apt's preferences tell the repository in this sources file from others: by what its Release file calls
# it, for a mirror calls it the same, and by its host where it has no name. It fails where one that is not kgpu's is the same.
pin_for() {
  awk '
    function pattern(value) { gsub(/[^A-Za-z0-9 _.:\/~+-]+/, "*", value); sub(/^\//, "*", value); return value }
    BEGIN { RS = ""; FS = "\n" }
    {
      o = l = host = file = ""
      for (i = 1; i <= NF; i++) {
        value = $i
        sub(/^[^:]*: */, "", value)
        if ($i ~ /^Origin:/) o = value
        if ($i ~ /^Label:/) l = value
        if ($i ~ /^Site:/) { host = value; gsub(/^[a-z+]*:\/\/([^\/@]*@)?|[:\/].*/, "", host) }
        if ($i ~ /^Sourcesentry:/) { file = value; sub(/:[0-9]+$/, "", file) }
      }
    }
    own { origin = o; label = l; site = host; found = 1; next }
    file ~ /\/kgpu[^\/]*\.list$/ { next }
    origin == "" && label == "" { if (tolower(host) == tolower(site)) shared = 1; next }
    (origin == "" || tolower(o) == tolower(origin)) && (label == "" || tolower(l) == tolower(label)) { shared = 1 }
    END {
      if (!found || shared) exit 1
      if (origin == "" && label == "") { print "origin \"" site "\""; exit }
      print "release " (origin == "" ? "" : "o=" pattern(origin)) (origin != "" && label != "" ? "," : "") (label == "" ? "" : "l=" pattern(label))
    }' own=1 <(targets -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=-) own=0 <(targets)
}

# preferences FILE prints what apt may take from the repository in this sources file. At priority 1 it takes nothing in the place
# of what is installed or elsewhere, and what nobody else has by request; 500 is what repositories have.
preferences() {
  local pin
  if was_there || ! pin=$(pin_for "$1"); then
    echo '# apt had this repository before kgpu, or has it by another way as well: it may take all from it. Written by kgpu.'
    return
  fi
  cat <<EOF
# Of this repository only what kgpu takes from it may replace other packages, written by kgpu.
Package: *
Pin: $pin
Pin-Priority: 1

Package: $(value_lines packages | paste -sd' ')
Pin: $pin
Pin-Priority: 500
EOF
}

# What apt makes of the list, and of all others beside it, is asked before anything changes: one that is broken is not kgpu's to
# mend. A list of kgpu's own that is there gives its place to the new one.
trial=$KGPU_STEP/trial.list
printf '%s\n' "$line" >"$trial"
own_lists=$(apt_repositories "$trial") || refuse_sources "$trial"
own=$(head -n 1 <<<"$own_lists" | cut -f 1,2)
apt_beside "$trial" "$list"
giving=()
for file in $(apt_sources); do
  if [[ $file == "$list" ]]; then continue; fi
  others=$(apt_repositories "$file") || refuse_sources "$file"
  if is_own <<<"$others"; then
    rm "$apt_beside/${file#/etc/apt/}"
    give_way "$file" >"$apt_beside/${file#/etc/apt/}"
    giving+=("$file")
  fi
done
apt_takes_beside "$list"

command -v gpg >/dev/null || apt_install gpg
command -v curl >/dev/null || apt_install curl ca-certificates
key_for "$(value name)" "$KGPU_STEP/values/key_url" "$KGPU_STEP/values/fingerprint"
key_fetch "$KGPU_STEP/keyring"
key_install "$KGPU_STEP/keyring" "$keyring"
key_note "$keyring" "$KGPU_STEP/values/key_url" "$KGPU_STEP/values/fingerprint"
# The time of the keyring says when apt last took what is signed with it: not yet.
touch -d @0 "$keyring"
prefix=$(lists_prefix)
record_once lists "$prefix"
# What apt must not take from there it must know before it knows the repository.
install_files

# The list is tried before it is installed: a repository that fails does not stay to disturb every later apt.
if apt_update_list "$trial"; then
  for file in "${giving[@]}"; do
    echo "$file: its entry for ${own%%$'\t'*} gives way to one whose key is checked"
    put_file "$file" "$(stat -c %a "$file")" <"$apt_beside/${file#/etc/apt/}"
  done
  preferences "$trial" >"$KGPU_STEP/preferences"
  put_file "$(value preferences)" 644 <"$KGPU_STEP/preferences"
  put_file "$list" 644 <"$trial"
  touch "$keyring"
elif [[ $(value_or optional no) == yes ]] && apt_says ' 404 |does not have a Release file' >/dev/null; then
  echo "$(value name) offers nothing for this release"
  touch "$keyring"
else
  apt_failed "$(value name)"
fi
