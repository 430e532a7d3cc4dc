# shellcheck shell=bash
# The etcd of a control plane, asked by the gateway that it has for JSON.
# Source: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/.

# etcd_ask METHOD JSON asks the etcd of this host for something of its members.
etcd_ask() {
  local pki=/etc/kubernetes/pki/etcd
  curl -fsS --noproxy '*' -m 20 --cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" --key "$pki/healthcheck-client.key" \
    -d "$2" "https://127.0.0.1:2379/v3/cluster/member/$1"
}

# etcd_forget NODE ADDRESS takes the member out of etcd that a machine had which is lost. What answers there is not lost.
etcd_forget() {
  local members member id
  members=$(etcd_ask list '{"linearizable":true}') || fail_transient API_UNREACHABLE 'etcd does not tell which members it has'
  while IFS= read -r member; do
    [[ $member =~ \"ID\":\"([0-9]+)\" && $member == *"\"https://$2:2380\""* ]] || continue
    id=${BASH_REMATCH[1]}
    [[ $(endpoint_state "$2" 2380 5) != open ]] || fail HOST_ETCD_STALE "an etcd answers at $2, where that of $1 is to be lost"
    echo "etcd has a member on $1, which is lost: it goes"
    etcd_ask remove "{\"ID\":\"$id\"}" >/dev/null || fail_transient API_UNREACHABLE "etcd does not let go of the member on $1"
  done < <(tr '{' '\n' <<<"${members#*\"members\"}")
}

# etcd_leave takes the member of this host out of etcd, unless it is the only one. kubeadm reset does not where the node is deleted
# already, and the members that stay lose their majority. An etcd that does not answer has nothing to say here.
etcd_leave() {
  local members own
  [[ -e /etc/kubernetes/manifests/etcd.yaml ]] || return 0
  members=$(etcd_ask list '{"linearizable":true}' 2>/dev/null) || return 0
  own=$(sed -nE 's/.*"member_id":"([0-9]+)".*/\1/p' <<<"$members")
  [[ -n $own && $(grep -o '"ID":' <<<"$members" | wc -l) -gt 1 ]] || return 0
  etcd_ask remove "{\"ID\":\"$own\"}" >/dev/null || fail_transient API_UNREACHABLE 'etcd does not let go of the member on this host'
}
