#!/usr/bin/env bash
# Has this control plane make backups by itself, and begin with the first when this kgpu has ended. Values: to (a directory), own (yes:
# kgpu makes it), node. Files: the program, kgpu-backup.service and kgpu-backup.timer.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

to=$(value to)
node=$(value node)
state=/var/lib/kgpu/scheduled
timer=kgpu-backup.timer service=kgpu-backup.service
mark=$to/.kgpu-backups-$node

if [[ $(value_or own no) == yes ]]; then
  claim_dir "${to%/*}"
  [[ -e $to ]] || record_once backups "$to" "$node" made
  (umask 077 && mkdir -p "$to")
fi
# A share whose server is away answers nobody.
if ! real=$(timeout 20 readlink -e -- "$to") || ! timeout 20 test -d "$real"; then
  fail BACKUP_TARGET "$to is no directory, or does not answer"
fi
if [[ $(timeout 20 stat -f -c %T -- "$real") == @(tmpfs|ramfs) && $(stat -c %d -- "$real") != "$(stat -c %d /var/lib/kgpu)" ]]; then
  fail BACKUP_TARGET "$to is in memory: the next boot finds nothing there"
fi
[[ $real/ != /var/lib/@(etcd|kgpu)/* ]] || fail BACKUP_TARGET "$to leads to $real, which is lost with what is backed up"
ledger_has backups "$to" "$node" || record backups "$to" "$node" found
if [[ -e $state/to && $(<"$state/to") == "$to" && ! -e $mark ]]; then
  fail BACKUP_TARGET "$to has no file ${mark##*/}, with which kgpu marked it: what belongs there is not mounted; if it is another one, touch $mark"
fi
(umask 077 && : >>"$mark") 2>"$KGPU_STEP/errors" || fail BACKUP_TARGET "$(tail -n 1 "$KGPU_STEP/errors")"
(umask 077 && mkdir -p "$state")
printf '%s\n' "$to" >"$state/to"
printf '%(%s)T\n' -1 >"$state/since"
claim_dir /var/lib/systemd/timers
claim_tree "/var/lib/systemd/timers/stamp-$timer"
install_files
remember_unit "$service"
remember_unit "$timer"
units_reload "$timer" "$service"
unit_at_boot "$timer"
systemctl restart -- "$timer" || unit_failed "$timer"
systemctl start --no-block -- "$service"
