#!/usr/bin/env bash
# Lets the host keep its time. Values: package (systemd-timesyncd or chrony).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

package=$(value package)
claim_user _chrony systemd-timesync
claim_group _chrony systemd-timesync
claim_tree /var/lib/chrony /var/log/chrony /var/lib/systemd/timesync
apt_install "$package"
unit_enable "$package.service"
