# shellcheck shell=bash
# The virtual address of the API server, which keepalived has on one of several control planes.

api_restarts=/run/kgpu-api-restarts # keepalived's check knows it; a boot takes it away

# has_address ADDRESS INTERFACE tells whether an interface of this host has an address.
has_address() {
  [[ -n $(ip -o -4 address show dev "$2" to "$1") ]]
}

# has_virtual_ip tells whether this host has the virtual address. One that a change of the inventory gave up may be in the ledger, too.
has_virtual_ip() {
  local number
  local -a args
  for number in $(ledger_find virtual-ip); do
    mapfile -t args <"$ledger/$number/args"
    if has_address "${args[@]}"; then return 0; fi
  done
  return 1
}

# give_virtual_ip_away has another control plane take the virtual address before the API server of this one restarts, and keeps it away
# until the step ends. Without that, clients would wait until keepalived has found out. Where no other takes it, as their API servers
# do not work, it stays.
give_virtual_ip_away() {
  local n
  grep -qs unicast_peer /etc/keepalived/keepalived.conf || return 0
  trap 'rm -f "$api_restarts"' EXIT
  : >"$api_restarts"
  for ((n = 0; n < 10; n++)); do
    has_virtual_ip || return 0
    [[ $n -gt 0 ]] || waiting 'another control plane to take the virtual address'
    pause
  done
}
