#!/usr/bin/env bash
# Gives the kubelet a new certificate in place of one that has ended. Its node, with its UID, its labels and its pods, stays. Values:
# node (its name); on a worker: token (with which the kubelet asks for it, secret); on a control plane: kubeadm (its configuration).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

node=$(value node)
config=$KGPU_STEP/values/kubeadm
kubeconfig=/etc/kubernetes/kubelet.conf
bootstrap=/etc/kubernetes/bootstrap-kubelet.conf
current=/var/lib/kubelet/pki/kubelet-client-current.pem

# valid FILE tells whether the first certificate in a file has not ended.
valid() {
  openssl x509 -noout -checkend 0 -in "$1" >/dev/null 2>&1
}

# put_whole PATH makes a file what standard input has, for its owner only, whole or not at all.
put_whole() {
  (umask 077 && cat >"$1.kgpu-new")
  sync -d "$1.kgpu-new"
  mv -f "$1.kgpu-new" "$1"
  sync -d "${1%/*}"
}

# ask_with TOKEN writes what a kubelet whose certificate has ended asks for another one with: a token of the same cluster.
# Source: pkg/kubelet/certificate/bootstrap of k8s.io/kubernetes.
ask_with() {
  local server ca
  server=$(sed -nE 's/^ *server: *(.*)$/\1/p;T;q' "$kubeconfig")
  ca=$(cluster_ca | base64 -w 0)
  [[ -n $server && -n $ca ]] || fail HOST_HALF_MADE "$kubeconfig does not say where the cluster is"
  put_whole "$bootstrap" < <(printf '%s\n' 'apiVersion: v1' 'kind: Config' 'clusters:' '- name: cluster' '  cluster:' \
    "    server: $server" "    certificate-authority-data: $ca" 'contexts:' '- name: bootstrap' \
    '  context: {cluster: cluster, user: bootstrap}' 'current-context: bootstrap' 'users:' '- name: bootstrap' '  user:' "    token: $1")
}

# make_here has kubeadm make the kubelet's kubeconfig with the key of the cluster's authority, which a control plane has. The one that is
# there, which kubeadm would keep, is replaced by a whole one: a folder of its own takes it first.
make_here() {
  local made=$KGPU_STEP/kubeconfig
  rm -rf "$made"
  (umask 077 && mkdir "$made")
  run_kubeadm kubeadm init phase kubeconfig kubelet --config "$config" --kubeconfig-dir "$made" || kubeadm_failed 'kubeadm init phase kubeconfig'
  [[ -s $made/kubelet.conf ]] || fail CERTIFICATE_NOT_RENEWED 'kubeadm made no kubeconfig of the kubelet: the key of the cluster authority is not on this host'
  put_whole "$kubeconfig" <"$made/kubelet.conf"
  rm -rf "$made"
}

# rotates tells whether the kubelet keeps its certificate where it renews it.
rotates() {
  valid "$current"
}

# known tells whether the API server knows the kubelet by its new certificate.
known() {
  as_kubelet get --raw "/api/v1/nodes/$node" >/dev/null 2>"$KGPU_STEP/errors"
}

# wait_for WHAT COMMAND... returns when the command succeeds.
wait_for() {
  local told='' what=$1
  shift
  until "$@"; do
    [[ $(seconds_left) -gt 0 ]] || fail KUBELET_CERTIFICATE_ENDED "$what does not happen in time: $(journalctl -q --no-pager -n 1 -o cat -u kubelet.service 2>/dev/null || true)"
    [[ -n $told ]] || waiting "$what"
    told=yes
    pause
  done
}

[[ -s $kubeconfig ]] || fail HOST_HALF_MADE "there is no $kubeconfig"
if [[ -f $config ]]; then
  make_here
  unit_restart kubelet.service
  wait_for 'the kubelet to take its new certificate' rotates
  run_kubeadm kubeadm init phase kubelet-finalize all --config "$config" || kubeadm_failed 'kubeadm init phase kubelet-finalize'
  exit 0
fi
if ! rotates || [[ ! -e $bootstrap ]]; then
  ask_with "$(value token)"
  unit_restart kubelet.service
fi
wait_for 'a new certificate from the cluster' rotates
wait_for "what the API server says of node $node" known
rm -f "$bootstrap"
sync -d /etc/kubernetes
