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

# give_way FILE takes the entries out of use that name the same repository: apt refuses two keys for one.
give_way() {
  local file=$1 url suite new=$KGPU_STEP/other
  read -r url suite _ < <(sed -E 's/^deb +(\[[^]]*\] *)?//' <<<"$line")
  if [[ $file == *.sources ]]; then
    awk -v url="${url%/}" -v suite="$suite" '
      BEGIN { RS = ""; ORS = "\n\n" }
      {
        uris = suites = ""
        count = split($0, lines, "\n")
        for (i = 1; i <= count; i++) {
          if (tolower(lines[i]) ~ /^uris:/) { uris = lines[i]; gsub(/^[^:]*:[[:blank:]]*|\/*[[:blank:]]*$/, "", uris) }
          if (tolower(lines[i]) ~ /^suites:/) { suites = lines[i]; gsub(/^[^:]*:[[:blank:]]*|[[:blank:]]*$/, "", suites) }
        }
        if (uris != url || suites != suite) { print; next }
        found = 1
        for (i = 1; i <= count; i++) if (tolower(lines[i]) !~ /^enabled:/) printf "%s\n", lines[i]
        print "Enabled: no"
      }
      END { exit !found }' "$file" >"$new" || return 0
  else
    awk -v url="${url%/}" -v suite="$suite" '
      /^[[:blank:]]*deb(-src)?[[:blank:]]/ {
        rest = $0
        sub(/^[[:blank:]]*deb(-src)?[[:blank:]]+(\[[^]]*\][[:blank:]]*)?/, "", rest)
        split(rest, fields, /[[:blank:]]+/)
        sub(/\/+$/, "", fields[1])
        if (fields[1] == url && fields[2] == suite) { print "# " $0; found = 1; next }
      }
      { print }
      END { exit !found }' "$file" >"$new" || return 0
  fi
  echo "$file: its entry for $url gives way to one whose key is checked"
  put_file "$file" "$(stat -c %a "$file")" <"$new"
}

# was_there tells whether apt had this repository before kgpu: an entry of somebody else gave way to the new one.
was_there() {
  local url file
  read -r url _ < <(sed -E 's/^deb +(\[[^]]*\] *)?[a-z]+://' <<<"$line")
  while read -r file; do
    if [[ $file != "$list" ]] && ledger_has file "$file"; then return 0; fi
  done < <(apt_sources_with "$url")
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

for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
  if [[ -f $file && $file != "$list" ]]; then give_way "$file"; fi
done

# The list is tried before it is installed: a repository that fails does not stay to disturb every later apt.
trial=$KGPU_STEP/trial.list
printf '%s\n' "$line" >"$trial"
if apt_update_list "$trial"; then
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
