#!/usr/bin/env bash
# Joins this host to the cluster. Values: kubeadm (its configuration, secret), endpoint (host:port), criSocket, node
# (its name; its host name where not given), flags (of kubeadm, one a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
endpoint=$(value endpoint)
socket=$(value criSocket)
mapfile -t flags < <(value_lines flags)
node=$(value_or node "${HOSTNAME,,}")
not_told="the API server at $endpoint does not tell about node $node"

# member tells whether this host is the node it should be, by what the cluster says. What its API server does not tell is
# waited for: no member is reset because that was busy.
member() {
  local told=
  grep -qF "server: https://$endpoint" /etc/kubernetes/kubelet.conf 2>/dev/null || return 1
  until timeout 15 kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=10s get --raw "/api/v1/nodes/$node" \
    >/dev/null 2>"$KGPU_STEP/errors"; do
    if said_no "$KGPU_STEP/errors"; then return 1; fi
    if [[ $(seconds_left) -le 300 ]]; then fail API_UNREACHABLE "$not_told"; fi
    if [[ -z $told ]]; then waiting "what the API server at $endpoint says of node $node"; fi
    told=yes
    pause
  done
}

# other_node tells whether the node object is another than the one that kgpu's join made.
other_node() {
  local number uid now
  number=$(ledger_find kubeadm join-done | tail -n 1)
  uid=$(sed -n 2p "$ledger/$number/args")
  now=$(node_uid "$node" /etc/kubernetes/kubelet.conf) || fail_transient API_UNREACHABLE "$not_told"
  [[ -n $uid && -n $now && $uid != "$now" ]]
}

# stays tells whether this host is a member that kgpu joined or took over.
stays() {
  if ! member; then
    return 1
  elif ledger_has adopted; then
    if cluster_changed adopted; then return 1; fi
  elif ledger_has kubeadm join-done; then
    if other_node; then return 1; fi
  else
    ledger_has kubeadm join
  fi
}

# finish_join does what is left of a kubeadm join that did not see its end: after a boot, the kubelet comes into the cluster by
# itself. kubeadm deletes the kubeconfig with the token then, and names the runtime's socket, up to 1.33 in an annotation
# (cmd/kubeadm/app/phases/patchnode).
finish_join() {
  rm -f /etc/kubernetes/bootstrap-kubelet.conf
  ! kubernetes_before 34 || as_kubelet annotate --overwrite node "$node" "kubeadm.alpha.kubernetes.io/cri-socket=$socket" ||
    fail_transient API_UNREACHABLE "kubectl annotate of node $node failed"
  remember_join join-done "$node" "$endpoint"
}

# part_of_cluster tells whether there is anything of a kubelet's or a control plane's membership here.
part_of_cluster() {
  [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/bootstrap-kubelet.conf || -e /etc/kubernetes/manifests/kube-apiserver.yaml ]]
}

wait_endpoint "$endpoint"
if [[ -e /etc/kubernetes/admin.conf ]]; then fail HOST_FOREIGN_CLUSTER 'this host is a control plane'; fi
if cluster_changed kubeadm; then fail HOST_FOREIGN_CLUSTER 'this host belongs to another cluster than the one that kgpu joined it to'; fi
if stays; then
  ledger_has adopted || ledger_has kubeadm join-done || finish_join
  unit_enable kubelet.service
  echo 'this host is a member already'
  exit 0
fi
if ledger_has kubeadm; then
  echo 'an earlier membership is incomplete or of another cluster: resetting this host first'
  leave_cluster "$socket"
elif part_of_cluster; then
  fail HOST_FOREIGN_CLUSTER 'this host belongs to a cluster that kgpu did not make'
fi

remember_images "$socket"
remember_kubernetes_sysctls
ledger_forget adopted
record kubeadm join
run_kubeadm kubeadm join --config "$config" "${flags[@]}" || kubeadm_failed 'kubeadm join'
remember_join join-done "$node" "$endpoint"
