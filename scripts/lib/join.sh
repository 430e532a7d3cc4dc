# shellcheck shell=bash
# Joining a cluster, as a worker or a control plane.

# remember_join WHAT NODE ENDPOINT records the end of a join, with the cluster and the UID of the node: both tell later whether this is
# still it.
remember_join() {
  local uid
  uid=$(node_uid "$2" /etc/kubernetes/kubelet.conf) || fail_transient API_UNREACHABLE "the API server at $3 does not tell about node $2"
  record_membership kubeadm "$1" ${uid:+"$uid"}
}

# reachable ENDPOINT tells whether something listens at host:port.
reachable() {
  [[ $(endpoint_state "$(tr -d '[]' <<<"${1%:*}")" "${1##*:}" 5) == open ]]
}

# wait_endpoint ENDPOINT waits for that: a control plane that reboots takes minutes. The other half of the step's time is kubeadm's.
wait_endpoint() {
  local told=
  until reachable "$1"; do
    if [[ $(seconds_left) -le 300 ]]; then fail API_UNREACHABLE "nothing answers at $1 from here"; fi
    if [[ -z $told ]]; then waiting "the API server at $1"; fi
    told=yes
    sleep 2
  done
}
