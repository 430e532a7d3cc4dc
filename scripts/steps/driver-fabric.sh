#!/usr/bin/env bash
# Installs what runs NVSwitches, at exactly the driver's version, and starts it. Values: packages (a name a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t packages < <(value_lines packages)
unit=nvidia-fabricmanager.service
driver=$(nvidia_library) || fail GPU_DRIVER_MISSING 'the libraries of the driver are not installed'

claim_tree /var/log/fabricmanager.log
apt_install_version "$driver" "${packages[@]}"
hold "${packages[@]}"
if unit_enabled "$unit"; then exit 0; fi
remember_unit "$unit"
systemctl enable -q --now -- "$unit" || {
  journalctl -q --no-pager -n 15 -o cat -u "$unit" >&2 || true
  nvidia_said >&2
  fail GPU_FABRIC_FAILED "$unit does not start"
}
