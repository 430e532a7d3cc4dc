#!/usr/bin/env bash
# Installs kubelet, kubeadm and kubectl at one exact version and holds them. Values: version (1.36.3), packages (those of the three that
# come, a line each; not given: all), missing (those that come to a node where they are missing, a line each; one that is there by now
# stays: it may be of an upgrade that was cut off while it installed it).
# Files: kubelet drop-ins and what else configures it, if any.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(value version)
mapfile -t packages < <(value_or packages $'kubelet\nkubeadm\nkubectl')
if [[ -f $KGPU_STEP/values/missing ]]; then
  packages=()
  for package in $(value_lines missing); do installed "$package" || packages+=("$package"); done
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
