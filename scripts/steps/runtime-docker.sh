#!/usr/bin/env bash
# Installs docker, its configuration in place before its first start. Values: packages (a set a line; the first set
# that apt offers is taken). Files: /etc/docker/daemon.json.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

claim_containers
claim_tree /var/lib/docker /etc/docker /run/docker /run/docker.sock
claim_group docker
apt_install iptables
if [[ ! -e /sys/class/net/docker0 ]]; then
  if ! ledger_has docker-network; then
    remember_sysctls net.ipv4.ip_forward
    record docker-network "iptables=$(forward_policy iptables)" "ip6tables=$(forward_policy ip6tables)"
  fi
fi
docker_rules "$KGPU_STEP/files/etc/docker/daemon.json"
install_files
apt_install_first packages
if unit_outdated docker.service; then runtime_restart docker; fi
unit_enable docker.service

# Not every distribution brings the command line with the daemon.
info=$(curl -fsS --max-time 60 --unix-socket /run/docker.sock http://localhost/info) || fail STEP_FAILED 'docker does not answer'
[[ $info == *'"CgroupDriver":"systemd"'* ]] || fail STEP_FAILED 'docker does not use the systemd cgroup driver'
