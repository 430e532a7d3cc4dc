# shellcheck shell=bash
# The ledger: what kgpu changed on this host and what was there before. An entry is durable before the change begins, and what
# is undone is durable before its entry goes. undo.sh plays the entries backwards. Everywhere, sync has -d or -f: see save of
# runner.sh.
ledger=/var/lib/kgpu/ledger

# Where the programs that steps start change files: apt and dpkg, systemctl, userdel, update-initramfs, kubeadm, container
# runtimes. Each of these places may be a file system of its own.
ledger_places=(/ /boot /boot/efi /etc /opt /usr /usr/local /var /var/cache /var/lib /var/lib/{containerd,docker,etcd,kubelet})

# entry_begin KIND ARG... begins an entry. The caller puts what was there under $entry/before, then calls entry_commit.
entry_begin() {
  entry=$ledger/.new
  [[ ! -e $entry ]] || rm -rf "$entry"
  umask 077
  mkdir -p "$entry/before"
  umask 022
  printf '%s\n' "$1" >"$entry/kind"
  shift
  : >"$entry/args"
  [[ $# -eq 0 ]] || printf '%s\n' "$@" >"$entry/args"
}

entry_commit() {
  local last number
  last=$(ledger_last)
  [[ -n $last ]] || rm -rf "${ledger%/*}/left" # of an earlier reset, which was cut off at its very end
  printf -v number %06d $((10#${last:-0} + 1))
  [[ -n $last ]] || sync -d "$ledger" "${ledger%/*}" "${ledger%/*/*}" # they may be new
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

# ledger_last prints the number of the newest entry, if there is any.
ledger_last() {
  local -a dirs=("$ledger"/[0-9][0-9][0-9][0-9][0-9][0-9])
  [[ ! -d ${dirs[-1]} ]] || printf '%s\n' "${dirs[-1]##*/}"
}

# proof_owed notes, as durably, that the cards are to be proven: gpu-proven.sh takes the note away.
proof_owed() {
  : >/var/lib/kgpu/unproven
  sync -d /var/lib/kgpu/unproven /var/lib/kgpu
}

# network_unproven notes, as durably, that pods are to reach each other and the DNS: cluster-ready.sh takes the note away.
network_unproven() {
  : >/var/lib/kgpu/network-unproven
  sync -d /var/lib/kgpu/network-unproven /var/lib/kgpu
}

# ledger_find KIND ARG... prints the entries of this kind whose first arguments are these, oldest first.
ledger_find() {
  local kind=$1 dir have i
  local -a args
  shift
  for dir in "$ledger"/[0-9][0-9][0-9][0-9][0-9][0-9]; do
    [[ -d $dir ]] || continue
    read -r have <"$dir/kind" || continue
    [[ $have == "$kind" ]] || continue
    mapfile -t args <"$dir/args"
    for ((i = 0; i < $#; i++)); do
      [[ ${args[i]-} == "${*:i+1:1}" ]] || continue 2
    done
    printf '%s\n' "${dir##*/}"
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

# settle PLACE WHAT waits until what was written to the file systems of ledger_places and of PLACE is on the disk, or tells what
# does not happen then. Of PLACE, the nearest directory counts that is there still. syncfs(2), which sync -f is, writes all of a
# file system: a journal (ext4, XFS) might carry along what was written to the same file system as the ledger, but nothing of
# another one, and btrfs logs single inodes for fsync(2). So no layout of file systems needs to be known here.
settle() {
  local place=$1 line
  local -a places systems=()
  local -A seen=()
  [[ $place == /* ]] || place=/
  while [[ ! -d $place || -L $place ]]; do
    place=${place%/*}
    place=${place:-/}
  done
  places=("$place")
  for place in "${ledger_places[@]}"; do
    [[ ! -d $place ]] || places+=("$place")
  done
  while IFS= read -r line; do
    [[ -n ${seen[${line%% *}]:-} ]] || systems+=("${line#* }")
    seen[${line%% *}]=yes
  done < <(stat -c '%d %n' -- "${places[@]}")
  sync -f "${systems[@]}" || fail STEP_FAILED "what was done cannot be written to the disk (${systems[*]}): $2"
}

# entry_drop NUMBER removes an entry, whose change is undone, in one rename, so that half an entry never remains.
entry_drop() {
  local -a args
  mapfile -t args <"$ledger/$1/args"
  settle "${args[0]-}" "the ledger's entry $1 stays"
  [[ ! -e $ledger/.old ]] || rm -rf "$ledger/.old"
  mv "$ledger/$1" "$ledger/.old"
  sync -d "$ledger"
  rm -rf "$ledger/.old"
}
