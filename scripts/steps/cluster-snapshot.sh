#!/usr/bin/env bash
# Keeps what etcd has, checked, before an upgrade changes it: in /var/lib/kgpu/snapshots, for root alone, the newest three. `etcdutl
# snapshot restore` reads it. Values: version (that the cluster has now); criSocket.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(wanted_version)
dir=/var/lib/kgpu/snapshots
new=$dir/.new
kept=3

if [[ ! -e $etcd_manifest ]]; then
  warning 'the etcd of this cluster is not kubeadm'\''s: keep a snapshot of it yourself'
  exit 0
fi
umask 077
rm -rf "$new" # of a step that was cut off
mkdir -p "$new"
backup_room "$new" || not_taken HOST_DISK_FULL
backup_snapshot "$(value criSocket)" "$new" || not_taken UPGRADE_SNAPSHOT
sync -d "$new/etcd.db"
mv -f "$new/etcd.db" "$dir/etcd-$version.db"
rm -rf "$new"
sync -d "$dir"
find "$dir" -maxdepth 1 -name 'etcd-*.db' -printf '%T@ %p\n' | sort -rn | tail -n +$((kept + 1)) | cut -d ' ' -f 2 | xargs -r rm -f
echo "kept: $dir/etcd-$version.db, $(stat -c %s "$dir/etcd-$version.db") bytes"
