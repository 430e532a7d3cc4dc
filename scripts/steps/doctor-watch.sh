#!/usr/bin/env bash
# Installs the check of cards that runs on the node itself. Files: the check, kgpu-gpu-watch.service and .timer.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

timer=kgpu-gpu-watch.timer service=kgpu-gpu-watch.service
install_files
# The check, too: undo makes systemd forget one that failed.
remember_unit "$service"
remember_unit "$timer"
# A reload of systemd takes the cards from containers that have them by the old way: only where units changed that it knows.
units_reload "$timer" "$service"
unit_at_boot "$timer"
systemctl start -- "$timer" || unit_failed "$timer"
