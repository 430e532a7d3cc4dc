#!/usr/bin/env bash
# Removes what a pod network of a former cluster left on a host that is a member of nothing.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

[[ ! -e /etc/kubernetes/kubelet.conf && ! -e /etc/kubernetes/admin.conf ]] || fail HOST_FOREIGN_CLUSTER 'this host is in a cluster'
pod_network_off
