#!/usr/bin/env bash
# Makes the folder that only root reads, into which kgpu sends what a restore needs, and remembers which archive it is: until the end,
# this host tells that it is being restored. Values: archive (its sum), size (of what comes, in bytes).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

archive=$(value archive)
size=$(value size)
(umask 077 && mkdir -p "$restore_dir")
if [[ ! -s $restore_dir/archive || $(<"$restore_dir/archive") != "$archive" ]]; then
  # Of a restore of another archive stays what this host had before: etcd's manifest, and where its data is kept.
  if [[ -e $restore_dir/restored && $(<"$restore_dir/restored") != none ]]; then rm -f "$restore_dir/before"; fi
  restore_undone
  find "$restore_dir" -mindepth 1 -maxdepth 1 ! -name etcd.yaml ! -name before ! -name restored -exec rm -rf {} +
fi
needed=$((size * 3 / 1024 + 262144)) # the snapshot, the data made of it, and what etcd writes then
free=$(df --output=avail -k "$restore_dir" | tail -n 1)
[[ $free -gt $needed ]] || fail HOST_DISK_FULL "the restore needs $((needed / 1024)) MiB below /var/lib"
restore_save archive <<<"$archive"
