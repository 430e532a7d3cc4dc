#!/usr/bin/env bash
# Makes this host the control plane of a new cluster. Values: kubeadm (its configuration), criSocket, flags (of
# kubeadm, one a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
socket=$(value criSocket)
mapfile -t flags < <(value_lines flags)
kubernetes_before 7 || flags+=(--skip-token-print)

# pull_images pulls the images of the control plane. A registry that refuses for now is given some time.
pull_images() {
  local pause words
  for pause in 2 4 8 16 32 0; do
    if kubeadm config images pull --config "$config" 2>&1 | tee "$kubeadm_log"; then return; fi
    words=$(grep -m 1 -i 'failed to pull' "$kubeadm_log") || words='the images of the control plane cannot be pulled'
    if [[ $pause == 0 || $(seconds_left) -le $pause || $(image_reason "$words") != REGISTRY_BUSY ]]; then pull_failed "$words"; fi
    waiting "the registry, $pause s: $(image_words "$words")"
    sleep "$pause"
  done
}

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

kubernetes_before 11 || pull_images
remember_kubernetes_sysctls
record kubeadm init
# kubeadm's output would show a token.
kubeadm init --config "$config" "${flags[@]}" </dev/null 2>&1 | hide_tokens | tee "$kubeadm_log" || kubeadm_failed 'kubeadm init'
wait_api
# The token that init makes by itself lives for a day; workers get one of their own.
if kubernetes_before 11; then
  mapfile -t tokens < <(kube -n kube-system get secrets -o name | sed -n 's/^secrets*\/bootstrap-token-/bootstrap-token-/p')
  [[ ${#tokens[@]} -eq 0 ]] || kube -n kube-system delete secrets "${tokens[@]}"
else
  kube -n kube-system delete secrets --field-selector type=bootstrap.kubernetes.io/token
fi
record kubeadm init-done
