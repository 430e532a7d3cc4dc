# shellcheck shell=bash
# The virtual address of the API server, which keepalived has on one of several control planes.

api_restarts=/run/kgpu-api-restarts # keepalived's check knows it; a boot takes it away

# give_virtual_ip_away has another control plane take the virtual address before the API server of this one restarts, and keeps it away
# until the step ends. Without that, clients would wait until keepalived has found out. Where no other takes it, as their API servers
# do not work, it stays.
give_virtual_ip_away() {
  local conf=/etc/keepalived/keepalived.conf address n
  grep -qs unicast_peer "$conf" || return 0
  address=$(sed -nE 's|^ *([0-9.]+)/32 dev .*$|\1|p' "$conf")
  trap 'rm -f "$api_restarts"' EXIT
  : >"$api_restarts"
  for ((n = 0; n < 50; n++)); do
    if [[ -z $(ip -o -4 address show to "$address") ]]; then return; fi
    sleep 0.2
  done
}
