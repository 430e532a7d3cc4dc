#!/usr/bin/env bash
# Adds a package repository whose key is checked. Values: name, key_url (a line each; the next where the key of one has
# expired), fingerprint (a line each; any may match), keyring, list, line, optional (yes: a suite that is not there is no
# failure). Files: preferences.d, if any.
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
  put_file "$list" 644 <"$trial"
  touch "$keyring"
elif [[ $(value_or optional no) == yes ]] && apt_says ' 404 |does not have a Release file' >/dev/null; then
  echo "$(value name) offers nothing for this release"
  touch "$keyring"
else
  apt_failed "$(value name)"
fi
