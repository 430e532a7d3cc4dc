#!/usr/bin/env bash
# Makes this host another control plane of the cluster. Values: kubeadm (its configuration, secret), endpoint (host:port), criSocket,
# node (its name), flags (of kubeadm, one a line), auditLog (the directory of the API server's audit log, where it has one), encryption
# (the file with the key for Secrets in etcd, where they are encrypted) and encryptionConfig (its content on the other control planes,
# as base64, secret), leaves (yes where the cluster has no node of this host any more, so that it leaves first). The files are those that
# the API server reads.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
endpoint=$(value endpoint)
socket=$(value criSocket)
mapfile -t flags < <(value_lines flags)
node=$(value node)

# part_of_cluster tells whether there is anything of a kubelet's or a control plane's membership here.
part_of_cluster() {
  [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/admin.conf || -e /etc/kubernetes/manifests/kube-apiserver.yaml ]]
}

# own_api tells whether the API server of this host itself works: its etcd is a member with a vote then.
own_api() {
  [[ $(curl -fsk --noproxy '*' -m 5 https://127.0.0.1:6443/livez) == ok ]]
}

# own_api_comes SECONDS gives it this long, as after a boot.
own_api_comes() {
  local until=$(($(seconds_left) - $1))
  if own_api; then return 0; fi
  unit_active kubelet.service || systemctl start kubelet.service || true
  waiting 'the API server of this control plane'
  until own_api; do
    [[ $(seconds_left) -gt 0 && $(seconds_left) -gt $until ]] || return 1
    pause
  done
}

# join_ended tells whether kubeadm join did all it does, though nobody recorded it: it marks the node when etcd has its member.
join_ended() {
  local part
  for part in admin.conf kubelet.conf manifests/etcd.yaml manifests/kube-apiserver.yaml; do
    [[ -s /etc/kubernetes/$part ]] || return 1
  done
  etcd_data && own_api_comes 240 && as_kubelet get node "$node" -o jsonpath='{.metadata.labels}' 2>/dev/null | grep -qF '"node-role.kubernetes.io/control-plane"'
}

if ledger_has adopted && [[ -e /etc/kubernetes/admin.conf ]] && ! cluster_changed adopted; then
  wait_api
  echo 'the control plane that kgpu took over is there'
  exit 0
fi
if cluster_changed kubeadm; then fail HOST_FOREIGN_CLUSTER 'this host belongs to another cluster than the one that kgpu joined it to'; fi
leaves=$(value_or leaves '')
if [[ -n $leaves ]]; then # as one whose join did not come to its end: killed from here on, the next run finds it so
  ledger_forget kubeadm join-plane-done
  ledger_forget kubeadm init-done
fi
if ledger_has kubeadm join-plane-done && [[ -e /etc/kubernetes/admin.conf ]]; then
  unit_enable kubelet.service
  own_api_comes 1800 || fail API_UNREACHABLE 'the API server of this control plane does not get ready'
  echo 'this host is a control plane already'
  exit 0
fi
wait_endpoint "$endpoint"
if [[ -z $leaves ]] && ledger_has kubeadm join-plane && ! images_torn && join_ended; then
  echo 'kubeadm join came to its end, which was not recorded'
  rm -f /etc/kubernetes/bootstrap-kubelet.conf
  remember_join join-plane-done "$node" "$endpoint"
  exit 0
fi
if ! was_plane && etcd_data; then fail HOST_ETCD_STALE '/var/lib/etcd/member has data that is not of a cluster that kgpu made'; fi
if ledger_has kubeadm; then
  echo 'an earlier membership is incomplete: resetting this host first'
  leave_cluster "$socket"
elif part_of_cluster; then
  fail HOST_FOREIGN_CLUSTER 'this host belongs to a cluster that kgpu did not make'
fi

secure
remember_images "$socket"
images_begin "$socket"
remember_kubernetes_sysctls
ledger_forget adopted
record kubeadm join-plane
run_kubeadm kubeadm join --config "$config" "${flags[@]}" || kubeadm_failed 'kubeadm join'
remember_join join-plane-done "$node" "$endpoint"
