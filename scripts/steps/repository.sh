#!/usr/bin/env bash
# Adds a package repository whose key is checked. Values: name, key_url, fingerprint (a line each; any may
# match), keyring, list, line, optional (yes: a suite that is not there is no failure). Files: preferences.d, if any.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

keyring=$(value keyring)
list=$(value list)
line=$(value line)
mapfile -t fingerprints < <(value_lines fingerprint)

# lists_prefix prints how apt's package lists of a deb line begin.
lists_prefix() {
  local url suite
  read -r url suite _ < <(sed -E 's/^deb +(\[[^]]*\] *)?//' <<<"$line")
  url=$(sed -E 's#^[a-z]+://([^/@]*@)?##; s#/+$##; s#_#%5f#g; s#/#_#g' <<<"$url")
  if [[ $suite == / ]]; then printf '%s_\n' "$url"; else printf '%s_dists_%s_\n' "$url" "${suite//\//_}"; fi
}

# check_key FILE fails unless every primary key in FILE has one of the fingerprints, and all of it came.
check_key() {
  local found allowed good wrong=''
  mapfile -t found < <(LC_ALL=C gpg --batch --homedir "$home" --with-colons --show-keys "$1" 2>"$KGPU_STEP/errors" |
    awk -F: '$1 == "pub" { primary = 1 } $1 == "fpr" && primary { print $10; primary = 0 }')
  [[ ${#found[@]} -gt 0 ]] || wrong='no key'
  # gpg tells the fingerprint of one that ends in the middle of what vouches for it.
  if grep -q 'premature eof' "$KGPU_STEP/errors" || { armored "$1" && ! grep -q 'END PGP PUBLIC KEY' "$1"; }; then wrong='cut short'; fi
  [[ -z $wrong ]] || fail REPO_KEY_MISMATCH "$(value name): what the server sent is $wrong; expected a key with fingerprint ${fingerprints[*]}"
  for key in "${found[@]}"; do
    good=
    for allowed in "${fingerprints[@]}"; do
      allowed=${allowed//[[:blank:]]/}
      if [[ ${allowed^^} == "$key" ]]; then good=yes; fi
    done
    [[ -n $good ]] || fail REPO_KEY_MISMATCH "$(value name): the key has fingerprint $key, expected ${fingerprints[*]}"
  done
}

armored() {
  grep -q 'BEGIN PGP PUBLIC KEY' "$1"
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
home=$KGPU_STEP/gnupg
rm -rf "$home"
mkdir -m 700 "$home"
fetch "$(value key_url)" "$KGPU_STEP/key"
check_key "$KGPU_STEP/key"
if armored "$KGPU_STEP/key"; then
  gpg --batch --homedir "$home" --dearmor <"$KGPU_STEP/key" >"$KGPU_STEP/keyring"
else
  cp "$KGPU_STEP/key" "$KGPU_STEP/keyring"
fi
put_file "$keyring" 644 <"$KGPU_STEP/keyring"
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
elif [[ $(value_or optional no) == yes ]] && apt_says ' 404 |does not have a Release file' >/dev/null; then
  echo "$(value name) offers nothing for this release"
else
  apt_failed "$(value name)"
fi
