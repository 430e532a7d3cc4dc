#!/usr/bin/env bash
# Takes this host out of its cluster and undoes everything that kgpu changed. Values: criSocket, cluster (gone, where it goes as a
# whole).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

undo_notes_in /var/lib/kgpu/left
tools_unmount
if ledger_has adopted; then
  # The cluster is its owner's, and stays. Where kgpu brought the programs that it runs on, they cannot go from under it.
  if [[ -n $(cluster_ca) ]] && ledger_has tree /etc/kubernetes; then
    fail HOST_MADE_BY_HAND 'the cluster that kgpu took over runs on packages that kgpu installed: kubeadm reset this host first'
  fi
elif cluster_changed kubeadm; then
  fail HOST_FOREIGN_CLUSTER 'there is another cluster here than the one that kgpu made: kubeadm reset this host first'
elif ledger_has kubeadm || ledger_has cni-mute; then
  undo_begin cluster
  leave_cluster "$(value criSocket)" "$(value_or cluster '')"
elif [[ -n $(cluster_ca) ]] && ledger_has tree /etc/kubernetes; then
  fail HOST_MADE_BY_HAND 'there is a cluster here that kgpu did not make, on packages that kgpu installed: kubeadm reset this host first'
fi
undo_all
rm -rf /var/lib/kgpu/kube-cache
# The runner removes /var/lib/kgpu as its last act.
: >/var/lib/kgpu/forget
