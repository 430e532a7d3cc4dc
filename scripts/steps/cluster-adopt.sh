#!/usr/bin/env bash
# Remembers that this host's membership was made by hand and is kgpu's to look after from now on. It changes nothing else.
# Values: kind (control-plane, worker), node (its name).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

kind=$(value kind)
node=$(value node)

if ledger_has adopted "$kind" && ! cluster_changed adopted; then
  echo 'kgpu took this host over already'
  exit 0
fi
config=/etc/kubernetes/kubelet.conf
if [[ $kind == control-plane ]]; then
  config=/etc/kubernetes/admin.conf
  [[ -e $config ]] || fail HOST_HALF_MADE "there is no $config"
  wait_api
fi
uid=$(node_uid "$node" "$config") || fail API_UNREACHABLE "the API server does not tell about node $node"
[[ -n $uid ]] || fail HOST_HALF_MADE "the cluster has no node $node"
# What kgpu did here before was another membership, which its owner ended.
ledger_forget kubeadm
ledger_forget adopted
record_membership adopted "$kind" "$uid"
