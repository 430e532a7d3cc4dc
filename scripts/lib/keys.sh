# shellcheck shell=bash
# Keys of package repositories. What is compared with the fingerprints is what is installed: a keyring that is made of the
# allowed keys alone.

# What a keyring is made from: the repository's name, addresses of its key, fingerprints of the keys that may sign it.
key_name=
key_urls=() key_allowed=()
key_home=$KGPU_STEP/gnupg # thrown away with the step
key_renewed='' key_dead=''
key_notes=/var/lib/kgpu/repositories

key_gpg() {
  gpg --batch --no-options --no-autostart --homedir "$key_home" "$@"
}

# key_for NAME URLS FINGERPRINTS sets what a keyring is made from: the lines of two files.
key_for() {
  key_name=$1
  mapfile -t key_urls < <(sed '/^$/d' "$2")
  mapfile -t key_allowed < <(sed 's/[[:blank:]]//g; /^$/d; y/abcdef/ABCDEF/' "$3")
}

key_refuse() {
  fail REPO_KEY_MISMATCH "$key_name: $1; expected a key with fingerprint ${key_allowed[*]}"
}

# key_check FILE ends the step unless every primary key in FILE is allowed, there is one, and all of it came.
key_check() {
  local shown=$KGPU_STEP/shown status=0 wrong='' found
  key_gpg --with-colons --show-keys "$1" >"$shown" 2>"$KGPU_STEP/errors" || status=$?
  if [[ $status -ne 0 ]]; then wrong='damaged'; fi
  grep -q '^pub:' "$shown" || wrong='no key'
  # gpg tells the fingerprint of one that ends in the middle of what vouches for it.
  if grep -q 'premature eof' "$KGPU_STEP/errors" || { grep -aq 'BEGIN PGP PUBLIC KEY' "$1" && ! grep -aq 'END PGP PUBLIC KEY' "$1"; }; then wrong='cut short'; fi
  # Behind another head gpg hides from one command what it shows to the next.
  if grep -a '^-----BEGIN ' "$1" | grep -vq '^-----BEGIN PGP PUBLIC KEY BLOCK-----'; then wrong='mixed with what is no public key'; fi
  [[ -z $wrong ]] || key_refuse "what the server sent is $wrong"
  while read -r found; do
    [[ " ${key_allowed[*]} " == *" $found "* ]] || key_refuse "the key has fingerprint $found"
  done < <(awk -F: '$1 == "pub" || $1 == "sec" { primary = 1 } $1 == "fpr" && primary { print $10; primary = 0 }' "$shown")
}

# key_load URL FILE makes FILE a keyring of the allowed keys that URL serves, and refuses any other beside them.
key_load() {
  rm -rf "$key_home" "$2"
  mkdir -m 700 "$key_home"
  fetch "$1" "$KGPU_STEP/key"
  key_check "$KGPU_STEP/key"
  key_gpg --import "$KGPU_STEP/key" >"$KGPU_STEP/errors" 2>&1 || key_refuse 'gpg cannot import what the server sent'
  key_gpg --export "${key_allowed[@]/#/0x}" >"$2" 2>"$KGPU_STEP/errors" || key_refuse 'gpg cannot export what the server sent'
  key_check "$2"
}

# key_lives FILE tells whether a keyring has a key that can sign now, by this host's clock as for apt. A key that has
# expired, or whose subkeys that sign have, has no capability S (GnuPG's doc/DETAILS).
key_lives() {
  local shown
  shown=$(key_gpg --with-colons --show-keys "$1" 2>/dev/null) || return 1
  awk -F: '$1 == "pub" && $2 !~ /[er]/ && $12 ~ /S/ { live = 1 } END { exit !live }' <<<"$shown"
}

# key_fetch FILE makes FILE a keyring from the first of the addresses whose key has not expired; where all have, from the
# first one. Of the others nothing is a failure: whoever has them may be gone.
key_fetch() {
  local url shown
  key_load "${key_urls[0]}" "$1"
  for url in "${key_urls[@]:1}"; do
    if key_lives "$1"; then return 0; fi
    shown=$(sed -E 's#//[^/@]*@#//#' <<<"$url")
    echo "$key_name: the key that was served has expired: asking $shown for it"
    if (key_load "$url" "$1.other") && key_lives "$1.other"; then
      mv -f "$1.other" "$1"
    else
      rm -f "$KGPU_STEP/failure"
    fi
  done
}

# key_install FILE PATH puts a keyring in place, and compares what is there.
key_install() {
  put_file "$2" 644 <"$1"
  key_check "$2"
  cmp -s "$1" "$2" || key_refuse "$2 is not what was put there"
}

# key_note PATH URLS FINGERPRINTS keeps, for key_renew, from what the keyring at PATH was made: two files. Addresses may hold a password.
key_note() (
  umask 077
  mkdir -p "$key_notes/$key_name"
  printf '%s\n' "$1" >"$key_notes/$key_name/keyring"
  cp "$2" "$key_notes/$key_name/key_url"
  cp "$3" "$key_notes/$key_name/fingerprint"
)

# key_renew fetches the keys of kgpu's repositories that have expired. $key_renewed says whether one lives again, $key_dead names
# those repositories whose keys do not, a blank before each: that is no failure, apt goes on without them.
key_renew() {
  local note keyring
  key_renewed='' key_dead=''
  for note in "$key_notes"/*/; do
    note=${note%/}
    if [[ ! -f $note/keyring ]]; then continue; fi
    keyring=$(<"$note/keyring")
    if [[ ! -d $key_home ]]; then mkdir -m 700 "$key_home"; fi
    if [[ ! -f $keyring ]] || key_lives "$keyring"; then continue; fi
    key_for "${note##*/}" "$note/key_url" "$note/fingerprint"
    echo "$key_name: the key in $keyring has expired: fetching it again"
    if (key_fetch "$KGPU_STEP/keyring") && key_lives "$KGPU_STEP/keyring"; then
      key_install "$KGPU_STEP/keyring" "$keyring"
      key_renewed=yes
    else
      rm -f "$KGPU_STEP/failure"
      key_dead+=" $key_name"
    fi
  done
}
