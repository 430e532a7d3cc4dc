# shellcheck shell=bash
# The cluster's API.

# kube ARG... runs kubectl as the cluster's administrator; its cache, below HOME, goes with the rest of kgpu's directory.
kube() {
  HOME=/var/lib/kgpu/kube-cache kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s "$@"
}

# as_kubelet is kube with the kubelet's credentials, which every node has: they may read and label their own node.
as_kubelet() {
  HOME=/var/lib/kgpu/kube-cache kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=30s "$@"
}

# said_no FILE tells whether the errors of kubectl there are an answer: there is no such object, or these credentials are not,
# or not yet, good for it. All others may pass.
said_no() {
  grep -qE '\((NotFound|Forbidden|Unauthorized)\)|must be logged in to the server|x509:|tls: failed to|client-(cert|key)|config file|invalid configuration' "$1"
}

# refused FILE tells whether the errors of kubectl there refuse what was asked for: it would be refused again.
refused() {
  grep -qE '^The .* is invalid: |\(BadRequest\)|^error: invalid ' "$1"
}

# kubernetes_before MINOR tells whether the Kubernetes that is installed is older than 1.MINOR: its programs do not have what
# came then. Source of the minors that the steps name: pkg/kubectl/cmd and cmd/kubeadm/app/cmd of k8s.io/kubernetes.
kubernetes_before() {
  local version
  version=$(dpkg-query -W -f '${Version}' kubectl 2>/dev/null) || return 1
  [[ $version =~ ^1\.([0-9]+)\. && ${BASH_REMATCH[1]} -lt $1 ]]
}

# kube_apply FILE makes the objects of a manifest what it says.
kube_apply() {
  local -a how=(--server-side --force-conflicts --field-manager kgpu)
  if kubernetes_before 18; then how=(); fi
  kube apply "${how[@]}" -f "$1"
}

# api_ready tells whether the API server of this control plane is ready. It has as long to answer as what is asked of it then.
api_ready() {
  local path=/readyz patience
  patience=$(seconds_left)
  if [[ $patience -gt 30 ]]; then patience=30; fi
  if [[ $patience -lt 5 ]]; then patience=5; fi
  if kubernetes_before 16; then path=/healthz; fi
  [[ $(timeout $((patience + 5)) kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout="${patience}s" get --raw "$path" 2>/dev/null) == ok ]]
}

# wait_api returns when the API server of this control plane is ready.
wait_api() {
  local told=
  until api_ready; do
    [[ $(seconds_left) -gt 0 ]] || fail API_UNREACHABLE 'the API server of this control plane does not get ready'
    if [[ -z $told ]]; then
      waiting 'the API server'
      told=yes
    fi
    pause
  done
}

# remember_kubernetes_sysctls records what kubelet and kube-proxy set by themselves.
remember_kubernetes_sysctls() {
  remember_sysctls vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys \
    kernel.keys.root_maxbytes net.ipv4.conf.all.route_localnet net.ipv4.ip_forward net.ipv6.conf.all.forwarding \
    net.netfilter.nf_conntrack_max net.netfilter.nf_conntrack_tcp_timeout_established net.netfilter.nf_conntrack_tcp_timeout_close_wait
}
