#!/usr/bin/env bash
# Reboots the host, once. Values: boot_id (of the boot that is to end), reason (what for).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

if [[ $(</proc/sys/kernel/random/boot_id) != "$(value boot_id)" ]]; then
  echo 'the host was rebooted'
  exit 0
fi
waiting "the reboot: $(value reason)"
sync
systemctl reboot || fail STEP_FAILED 'the host refuses to reboot'
# The step ends with this boot. The runner begins it again in the next one.
while :; do
  [[ $(seconds_left) -gt 0 ]] || fail STEP_TIMEOUT 'systemctl reboot did not end this boot'
  sleep 1
done
