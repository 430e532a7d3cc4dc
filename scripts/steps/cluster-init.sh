#!/usr/bin/env bash
# Makes this host the control plane of a new cluster. Values: kubeadm (its configuration), criSocket.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
socket=$(value criSocket)

if ledger_has kubeadm init-done; then
  wait_api
  echo 'the control plane is there'
  exit 0
fi
if ledger_has kubeadm; then
  echo 'an earlier kubeadm ended half-way: resetting this host first'
  leave_cluster "$socket"
elif [[ -e /etc/kubernetes/manifests/kube-apiserver.yaml || -e /etc/kubernetes/kubelet.conf ]]; then
  fail HOST_FOREIGN_CLUSTER 'there is a cluster here that kgpu did not make'
fi

kubeadm config images pull --config "$config" 2>&1 || fail_transient STEP_FAILED 'the images of the control plane cannot be pulled'
remember_kubernetes_sysctls
record kubeadm init
# kubeadm's output would show a token.
kubeadm init --config "$config" --skip-token-print </dev/null 2>&1 | tee "$kubeadm_log" || kubeadm_failed 'kubeadm init'
wait_api
# The token that init makes by itself lives for a day; workers get one of their own.
kube -n kube-system delete secrets --field-selector type=bootstrap.kubernetes.io/token
record kubeadm init-done
