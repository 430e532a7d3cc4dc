#!/usr/bin/env bash
# Makes this host the control plane of a new cluster. Values: kubeadm (its configuration), criSocket, flags (of
# kubeadm, one a line), auditLog (the directory of the API server's audit log, where it has one), encryption (the file with
# the key for Secrets in etcd, where they are encrypted), sums (of the files that were sent for a restore, whose data and identity the
# cluster gets then), node, address, peers and token (of the restored etcd). The files are those that the API server reads.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
socket=$(value criSocket)
mapfile -t flags < <(value_lines flags)
kubernetes_before 7 || flags+=(--skip-token-print)

# pull_images pulls the images of the control plane. A registry that refuses for now is given some time.
pull_images() {
  local pause words
  for pause in 2 4 8 16 32 0; do
    if run_kubeadm kubeadm config images pull --config "$config"; then return; fi
    words=$(grep -i 'failed to pull' "$kubeadm_log" | tail -n 1) || words='the images of the control plane cannot be pulled' # its last try
    if [[ $pause == 0 || $(seconds_left) -le $pause || $(image_reason "$words") != REGISTRY_BUSY ]]; then pull_failed "$words"; fi
    waiting "the registry, $pause s: $(image_words "$words")"
    sleep "$pause"
  done
}

# part_of_cluster tells whether there is a kubelet or an API server of a cluster here.
part_of_cluster() {
  [[ -e /etc/kubernetes/manifests/kube-apiserver.yaml || -e /etc/kubernetes/kubelet.conf ]]
}

# init_ended tells whether kubeadm init did all it does, though nobody recorded it: the add-ons are its last work.
init_ended() {
  [[ -e /etc/kubernetes/admin.conf ]] && api_comes && added daemonset kube-proxy && { added deployment coredns || added deployment kube-dns; }
}

# api_comes tells whether the API server gets ready. Where etcd has run it may be about to start, after a boot say, and has as
# long as kubeadm itself would give it.
api_comes() {
  local left least=$(($(seconds_left) - 240))
  if api_ready; then return 0; fi
  [[ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]] && etcd_data || return 1
  unit_active kubelet.service || systemctl start kubelet.service || true
  waiting 'the API server of an earlier kubeadm init, which may have come to its end'
  until api_ready; do
    left=$(seconds_left)
    [[ $left -gt 0 ]] || fail API_UNREACHABLE 'the API server of an earlier kubeadm init does not get ready'
    [[ $left -gt $least ]] || return 1
    pause
  done
}

# added KIND NAME tells whether the cluster has this part of an add-on. An administrator who may not look is one whom kubeadm
# init has not come to yet, and a look that fails otherwise says nothing.
added() {
  local name
  until name=$(kube -n kube-system get "$1" "$2" --ignore-not-found -o name 2>"$KGPU_STEP/errors"); do
    if said_no "$KGPU_STEP/errors"; then return 1; fi
    [[ $(seconds_left) -gt 0 ]] || fail API_UNREACHABLE 'the API server does not tell whether kubeadm init came to its end'
    pause
  done
  [[ -n $name ]]
}

# drop_tokens deletes the token that init makes by itself; workers get one of their own. One that stays lives for a minute.
drop_tokens() {
  local -a tokens
  if kubernetes_before 11; then
    mapfile -t tokens < <(kube -n kube-system get secrets -o name | sed -n 's/^secrets*\/bootstrap-token-/bootstrap-token-/p')
    [[ ${#tokens[@]} -eq 0 ]] || kube -n kube-system delete secrets "${tokens[@]}" || true
  else
    kube -n kube-system delete secrets --field-selector type=bootstrap.kubernetes.io/token || true
  fi
}

# restore_init gives the cluster that kubeadm init makes the identity and the data of the archive.
restore_init() {
  local image
  image=$(kubeadm config images list --config "$config" 2>/dev/null | grep '/etcd:') || fail RESTORE_FAILED 'kubeadm names no image of etcd'
  etcd_tools "$image" "$socket" "$restore_dir/tools" etcdutl || fail RESTORE_FAILED "$tools_missing"
  etcd_make "$restore_dir/tools" "$(value node)" "$(value address)" "$(value peers)" "$(value token)"
  etcd_place
  restore_pki
  flags+=(--ignore-preflight-errors=DirAvailable--var-lib-etcd)
}

restoring=$(value_or sums '')
if [[ -n $restoring ]]; then
  restore_check
  if restored && ledger_has kubeadm init-done; then
    wait_api
    echo 'the restored control plane is there'
    exit 0
  fi
  # What is left of a control plane goes; the data of its etcd is kept.
  restore_files
  planes_off
  etcd_keep
  ! ledger_has kubeadm || leave_cluster "$socket" gone
fi
if ledger_has adopted && [[ -e /etc/kubernetes/admin.conf ]] && ! cluster_changed adopted; then
  wait_api
  echo 'the control plane that kgpu took over is there'
  exit 0
fi
if cluster_changed kubeadm; then fail HOST_FOREIGN_CLUSTER 'there is another cluster here than the one that kgpu made'; fi
if ledger_has kubeadm init-done; then
  if [[ -e /etc/kubernetes/admin.conf ]]; then
    wait_api
    echo 'the control plane is there'
    exit 0
  fi
  if part_of_cluster; then fail HOST_HALF_MADE 'the control plane that kgpu made has lost its /etc/kubernetes/admin.conf'; fi
  if etcd_data; then fail HOST_ETCD_STALE 'the data of the cluster that kgpu made is in /var/lib/etcd/member, and its /etc/kubernetes is gone'; fi
fi
# What runs of torn images may seem to be all there.
if ledger_has kubeadm init && ! ledger_has kubeadm init-done && ! images_torn && init_ended; then
  echo 'kubeadm init came to its end, which was not recorded'
  # kubeadm may have died between the add-ons and what lets them in; to make them again changes nothing.
  kubernetes_before 13 || run_kubeadm kubeadm init phase addon all --config "$config" ||
    fail_transient API_UNREACHABLE 'kubeadm cannot make the add-ons again'
  record_membership kubeadm init-done
  drop_tokens
  exit 0
fi
if ledger_has kubeadm join-done && part_of_cluster; then fail HOST_FOREIGN_CLUSTER 'kgpu joined this host to a cluster as a worker: reset it there first'; fi
if ! ledger_has kubeadm init && etcd_data; then fail HOST_ETCD_STALE '/var/lib/etcd/member has data that is not of a cluster that kgpu made'; fi
if ledger_has kubeadm; then
  echo 'an earlier kubeadm ended half-way: resetting this host first'
  leave_cluster "$socket"
elif part_of_cluster; then
  fail HOST_FOREIGN_CLUSTER 'there is a cluster here that kgpu did not make'
fi

key=$(value_or encryption '')
if [[ -n $restoring && -n $key ]]; then put_file "$key" 600 <"$restore_dir/files/encryption.yaml"; fi
secure
remember_images "$socket"
images_begin "$socket"
kubernetes_before 11 || pull_images
remember_kubernetes_sysctls
ledger_forget adopted
record kubeadm init
[[ -z $restoring ]] || restore_init
run_kubeadm kubeadm init --config "$config" "${flags[@]}" || kubeadm_failed 'kubeadm init'
[[ -z $restoring ]] || restore_done
record_membership kubeadm init-done # before anything that an API server at work may refuse: what is not recorded may be reset
wait_api
drop_tokens
