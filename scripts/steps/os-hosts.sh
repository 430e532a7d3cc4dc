#!/usr/bin/env bash
# Gives the API server of this host's cluster a name, in /etc/hosts. Values: name, address, awaited (yes: the API server is to answer there
# before the name leads to it). Files: kgpu-api-name.service, which puts the line back at a boot.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

name=$(value name)
address=$(value address)
if [[ $(value_or awaited no) == yes ]]; then wait_endpoint "$address:6443"; fi
for number in $(ledger_find api-name); do
  mapfile -t args <"$ledger/$number/args"
  [[ ${args[0]} != "$name" ]] || continue
  hosts_forget "${args[0]}" # of a cluster that this host was, or was about to be, in
  entry_drop "$number"
done
hosts_name "$address" "$name"
install_files
remember_unit kgpu-api-name.service
units_reload kgpu-api-name.service
unit_at_boot kgpu-api-name.service
found=$(getent ahosts "$name" | awk '{ print $1 }' | sort -u) || true
if [[ $found != "$address" ]]; then
  fail HOST_API_NAME "$name leads to ${found:-nothing}, not to $address: see /etc/hosts, and the line hosts of /etc/nsswitch.conf"
fi
