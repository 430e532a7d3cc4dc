#!/usr/bin/env bash
# Puts what a backup takes of this host into a folder that only root reads: its ledger and, on a control plane, a snapshot of etcd,
# checked, and the files that the cluster is known by. Values: criSocket; etcd (yes on the control plane whose snapshot it is).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

dir=/var/lib/kgpu/backup
rm -rf "$dir" # of a backup that was cut off
umask 077
mkdir -p "$dir"

if [[ $(value_or etcd '') == yes ]]; then
  backup_room "$dir" || not_taken HOST_DISK_FULL
  backup_snapshot "$(value criSocket)" "$dir" || not_taken BACKUP_FAILED
  backup_version "$dir" || not_taken BACKUP_FAILED
  output snapshot <"$dir/status"
  backup_files "$dir" || not_taken API_UNREACHABLE
  output about <"$dir/about"
fi
tar -C /var/lib/kgpu -cf "$dir/ledger.tar" ledger
cd "$dir" || exit
for file in *.db *.tar; do
  [[ ! -e $file ]] || printf '%s\t%s\t%s\n' "$file" "$(stat -c %s "$file")" "$(sha256sum <"$file" | cut -d ' ' -f 1)"
done | output files
