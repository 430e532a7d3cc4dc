#!/usr/bin/env bash
# Has keepalived give the virtual address to a control plane that works. Values: address, interface, holds (yes: this host has it before
# the step ends). Files: keepalived's configuration and the program that looks at the API server.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

address=$(value address)
interface=$(value interface)
configuration=/etc/keepalived/keepalived.conf

if [[ -e $configuration ]] && ! ledger_has file "$configuration"; then
  fail HOST_KEEPALIVED_TAKEN "$configuration is there, and is not kgpu's"
fi
record_once virtual-ip "$address" "$interface"
# keepalived says there by which number the kernel knows its addresses, wherever iproute2 has no such folder yet.
claim_tree /etc/keepalived /etc/iproute2 /etc/iproute2/rt_addrprotos.d /etc/iproute2/rt_addrprotos.d/keepalived.conf
remember_unit network-online.target
apt_install keepalived
install_files
keepalived -t -f "$configuration" >"$KGPU_STEP/errors" 2>&1 || {
  cat "$KGPU_STEP/errors" >&2
  fail STEP_FAILED "keepalived refuses its configuration: $(tail -n 1 "$KGPU_STEP/errors")"
}
if unit_active keepalived.service && changed "$configuration"; then # the check is read each time it runs
  unit_restart keepalived.service
fi
unit_enable keepalived.service
[[ $(value_or holds no) == yes ]] || exit 0
until has_address "$address" "$interface"; do
  [[ $(seconds_left) -gt 480 ]] || fail VIRTUAL_IP_TAKEN "keepalived does not take $address on $interface: another router has it, or the interface is down"
  pause
done
