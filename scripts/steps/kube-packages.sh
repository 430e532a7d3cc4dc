#!/usr/bin/env bash
# Installs kubelet, kubeadm and kubectl at one exact version and holds them. Values: version (1.36.3), packages (those that are
# missing on a node, a line each; not given: all three). What is there by now stays as it is: it may be of an upgrade that was cut off
# while it installed the package.
# Files: kubelet drop-ins and what else configures it, if any.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(value version)
packages=(kubelet kubeadm kubectl)
if [[ -f $KGPU_STEP/values/packages ]]; then
  packages=()
  for package in $(value_lines packages); do installed "$package" || packages+=("$package"); done
fi

claim_containers
claim_tree /etc/kubernetes /usr/libexec/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/dockershim \
  /var/lib/weave /var/lib/calico /var/log/pods /var/log/containers /var/log/calico
install_files
apt_install_version "$version" "${packages[@]}"
hold kubelet kubeadm kubectl
if [[ ${#changed_files[@]} -gt 0 ]]; then systemctl daemon-reload; else units_reload kubelet.service; fi
if unit_outdated kubelet.service; then unit_restart kubelet.service; fi
systemctl is-enabled -q kubelet.service || unit_enable kubelet.service
