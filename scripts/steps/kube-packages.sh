#!/usr/bin/env bash
# Installs kubelet, kubeadm and kubectl at one exact version and holds them. Values: version (1.36.3).
# Files: kubelet drop-ins, if any.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(value version)
packages=(kubelet kubeadm kubectl)

# revision PACKAGE prints the newest revision of the version that apt offers.
revision() {
  apt-cache madison "$1" | awk -F ' *[|] *' -v version="$version" 'index($2, version "-") == 1 && !found { found = $2 } END { print found }'
}

claim_containers
claim_tree /etc/kubernetes /usr/libexec/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/dockershim \
  /var/lib/weave /var/lib/calico /var/log/pods /var/log/containers /var/log/calico
install_files
specs=()
for package in "${packages[@]}"; do
  found=$(revision "$package")
  if [[ -z $found ]]; then
    apt_update
    found=$(revision "$package")
  fi
  [[ -n $found ]] || fail PACKAGE_MISSING "$package $version is not offered; there are: $(apt-cache madison "$package" | awk -F ' *[|] *' '{ printf "%s ", $2 }')"
  specs+=("$package=$found")
done
apt_install "${specs[@]}"
hold "${packages[@]}"
if [[ ${#changed_files[@]} -gt 0 ]]; then systemctl daemon-reload; fi
systemctl is-enabled -q kubelet.service || unit_enable kubelet.service
