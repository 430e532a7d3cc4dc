#!/usr/bin/env bash
# Ends the backups that this control plane makes by itself. Archives stay.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

undo_entries unit kgpu-backup.timer
undo_entries unit kgpu-backup.service
undo_entries tree /var/lib/systemd/timers/stamp-kgpu-backup.timer
for path in /etc/systemd/system/kgpu-backup.{timer,service} /usr/local/sbin/kgpu-backup; do undo_entries file "$path"; done
undo_entries backups
undo_daemon_reload
rm -rf /var/lib/kgpu/scheduled # of one that was not set up to its end
undo_stays
