#!/usr/bin/env bash
# Brings the kubelet of this node, which is drained, to another version of Kubernetes. Values: version, node, worker (yes: kubeadm
# upgrade node is to be run; on a control plane it was), criSocket, flags (of kubeadm, one a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(wanted_version)
node=$(value node)
valid_nodes "$node"
mapfile -t flags < <(value_lines flags)

# kubelet_told tells whether the cluster knows that the new kubelet runs.
kubelet_told() {
  [[ $(as_kubelet get node "$node" -o go-template='{{.status.nodeInfo.kubeletVersion}}' 2>/dev/null) == "v$version" ]]
}

upgrade_begins node
if [[ $(value_or worker no) == yes ]]; then
  kubeadm_upgrade node "${flags[@]}"
else
  give_virtual_ip_away # another minor version of the kubelet makes the static pods anew
fi
apt_install_version "$version" kubelet kubectl
hold kubelet kubeadm kubectl
systemctl daemon-reload
unit_restart kubelet.service
told=
until kubelet_told; do
  [[ $(seconds_left) -gt 0 ]] || fail NODE_NOT_READY "the kubelet $version of node $node does not report to the cluster"
  if [[ -z $told ]]; then waiting "the kubelet $version of $node"; fi
  told=yes
  pause
done
upgrade_ended
