# shellcheck shell=bash
# The ledger: what kgpu changed on this host and what was there before. An entry is durable before the change begins;
# undo.sh plays the entries backwards. Everywhere, sync has -d: see save of runner.sh.
ledger=/var/lib/kgpu/ledger

# entry_begin KIND ARG... begins an entry. The caller puts what was there under $entry/before, then calls entry_commit.
entry_begin() {
  (umask 077 && mkdir -p "$ledger")
  entry=$ledger/.new
  rm -rf "$entry"
  (umask 077 && mkdir -p "$entry/before")
  printf '%s\n' "$1" >"$entry/kind"
  shift
  : >"$entry/args"
  [[ $# -eq 0 ]] || printf '%s\n' "$@" >"$entry/args"
}

entry_commit() {
  local last number
  last=$(ledger_entries | tail -n 1)
  [[ -n $last ]] || rm -rf "${ledger%/*}/left" # of an earlier reset, which was cut off at its very end
  printf -v number %06d $((10#${last:-0} + 1))
  find "$entry" \( -type f -o -type d \) -exec sync -d {} +
  mv "$entry" "$ledger/$number"
  sync -d "$ledger"
}

# record KIND ARG... makes an entry that needs nothing but its arguments.
record() {
  entry_begin "$@"
  entry_commit
}

# record_once KIND ARG... does so unless the same entry is there.
record_once() {
  ledger_has "$@" || record "$@"
}

# ledger_entries prints the numbers of the entries, oldest first.
ledger_entries() {
  local dir
  for dir in "$ledger"/[0-9][0-9][0-9][0-9][0-9][0-9]; do
    [[ ! -d $dir ]] || printf '%s\n' "${dir##*/}"
  done
}

# proof_owed notes, as durably, that the cards are to be proven: gpu-proven.sh takes the note away.
proof_owed() {
  : >/var/lib/kgpu/unproven
  sync -d /var/lib/kgpu/unproven /var/lib/kgpu
}

# ledger_find KIND ARG... prints the entries of this kind whose first arguments are these.
ledger_find() {
  local kind=$1 number have i
  local -a args
  shift
  for number in $(ledger_entries); do
    read -r have <"$ledger/$number/kind" || continue
    [[ $have == "$kind" ]] || continue
    mapfile -t args <"$ledger/$number/args"
    for ((i = 0; i < $#; i++)); do
      [[ ${args[i]-} == "${*:i+1:1}" ]] || continue 2
    done
    printf '%s\n' "$number"
  done
}

ledger_has() {
  [[ -n $(ledger_find "$@") ]]
}

# ledger_forget KIND ARG... drops entries whose change is no longer there.
ledger_forget() {
  local number
  for number in $(ledger_find "$@"); do
    entry_drop "$number"
  done
}

# entry_drop NUMBER removes an entry in one rename, so that half an entry never remains.
entry_drop() {
  rm -rf "$ledger/.old"
  mv "$ledger/$1" "$ledger/.old"
  sync -d "$ledger"
  rm -rf "$ledger/.old"
}
