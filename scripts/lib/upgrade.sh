# shellcheck shell=bash
# Upgrades of Kubernetes: what was begun on this host and is not at its end.

# upgrade_begins plane|node notes, durably, what is about to change, so that a later run does it again.
upgrade_begins() {
  printf '%s\n' "$1" >/var/lib/kgpu/upgrading
  sync -d /var/lib/kgpu/upgrading /var/lib/kgpu
}

# upgrade_ended takes the note away.
upgrade_ended() {
  rm -f /var/lib/kgpu/upgrading
}

# wanted_version prints the version that the step brings.
wanted_version() {
  local version
  version=$(value version)
  [[ $version =~ ^1\.[0-9]+\.[0-9]+$ ]] || fail STEP_FAILED "'$version' is no version of Kubernetes"
  printf '%s\n' "$version"
}

# kubeadm_upgrade ARG... runs kubeadm upgrade. kubeadm itself puts back what it changed of a control plane that does not get up
# again. It may only have been slow: the same command is right the second time.
kubeadm_upgrade() {
  local line slow='hash for component .* did not change|timed out waiting|etcdserver: |connection refused|could not be reached|context deadline exceeded'
  if run_kubeadm kubeadm upgrade "$@"; then return; fi
  if line=$(grep -m 1 -iE "$slow" "$kubeadm_log"); then
    fail_transient UPGRADE_FAILED "kubeadm upgrade $1: $line"
  fi
  if grep -qE '\[ERROR [A-Za-z0-9-]+\]' "$kubeadm_log"; then kubeadm_failed "kubeadm upgrade $1"; fi
  fail UPGRADE_FAILED "kubeadm upgrade $1: $(grep -m 1 -iE '^error|error execution|FATAL' "$kubeadm_log" || tail -n 1 "$kubeadm_log")"
}
