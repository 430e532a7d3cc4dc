# shellcheck shell=bash
# Running kubeadm: what it says, what it warns of, and why it failed.
kubeadm_log=$KGPU_STEP/kubeadm.log

# hide_tokens passes standard input on without the bootstrap tokens in it: kubeadm 1.6 prints its own.
hide_tokens() {
  sed -uE 's/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/(token)/g'
}

# run_kubeadm COMMAND... runs kubeadm. Its output is told and is in $kubeadm_log then; what it warns of is told as warnings.
run_kubeadm() {
  local status=0
  "$@" </dev/null 2>&1 | hide_tokens | tee "$kubeadm_log" || status=$?
  kubeadm_warnings <"$kubeadm_log"
  return "$status"
}

# kubeadm_warnings tells the warnings in kubeadm's output, standard input, that are for the operator.
kubeadm_warnings() {
  local words
  warnings_in | while IFS= read -r words; do
    if ! needs_nobody "$words"; then warning "kubeadm: $words"; fi
  done
}

# warnings_in prints the words of kubeadm's warnings: of its checks, with their names (up to 1.8 "[preflight] WARNING:"), and of
# klog.
warnings_in() {
  sed -nE -e 's/^[[:space:]]*\[WARNING ([^]]+)\]: /\1: /p; t' \
    -e 's/^W[0-9]{4} [0-9:.]+ +[0-9]+ [^ ]+\] ((\[[^]]+\] )?)(WARNING: )?/\1/p; t' \
    -e 's/^(\[[a-z-]+\] )WARNING: /\1/p'
}

# needs_nobody WORDS tells whether a warning of kubeadm's is one that kgpu causes, or has said or answered itself. Sources:
# cmd/kubeadm/app of k8s.io/kubernetes, 1.6 to 1.36.
needs_nobody() {
  case $1 in
    # preflight refuses such a host (HOST_CGROUP_V1) until the inventory has failCgroupV1: false.
    'SystemVerification: cgroups v1 support '*) ! kubernetes_before 35 ;;
    # The plan says so of a containerd before 2 (HOST_CONTAINERD_OLD).
    'ContainerRuntimeVersion: '*'the CRI method RuntimeConfig'*) [[ $(value_or criSocket '') == *containerd.sock ]] ;;
    # The API server goes to the addresses that kgpu gives the kubelets (--node-ip): nobody looks a node up by its name.
    'Hostname: hostname "'*) ;;
    # kgpu takes the newest docker that the version knows, or the one of today (catalog.Minor.NewestDocker).
    *'ocker version is '*' validated version'*) ;;
    # Up to 1.10. docker does without it, and other runtimes are for newer versions.
    'FileExisting-crictl: '*) ;;
    # A restore has put the data there.
    'DirAvailable--var-lib-etcd: '*) ;;
    # Its own default: on a node that is no control plane it expects the one of IPv6 (componentconfigs/kubeproxy.go).
    'The recommended value for "bindAddress" in "KubeProxyConfiguration" is: ::; the provided value is: 0.0.0.0') ;;
    # 1.13 to 1.19 say so of every configuration of a kubelet and of kube-proxy.
    'Cannot validate '*' config - no validator is available' | 'kubeadm cannot validate component configs for API groups '*) ;;
    # 1.16 to 1.18 say so of what they set themselves.
    'the default kube-apiserver authorization-mode is "Node,RBAC"; using "Node,RBAC"') ;;
    # The inventory says so: the port is that of the load balancer.
    '[endpoint] port specified in controlPlaneEndpoint overrides bindPort '*) ;;
    # Up to 1.10, of themselves. The token is one that kgpu gives a minute and deletes.
    '[kubeadm] kubeadm is in beta'* | '[kubeadm] starting in 1.8, tokens expire '*) ;;
    # What kubeadm reset does not stop, unmount or delete, leave_cluster does, and says what stays; the only member of etcd goes
    # with its cluster.
    '[reset] '*) ;;
    *) return 1 ;;
  esac
}

# kubeadm_failed WHAT ends the step after a failed kubeadm, whose output is in $kubeadm_log.
kubeadm_failed() {
  local line
  if line=$(grep -m 1 -E '\[ERROR Port-' "$kubeadm_log"); then fail HOST_PORT_TAKEN "$line"; fi
  if line=$(grep -m 1 -E '\[ERROR Swap\]' "$kubeadm_log"); then fail HOST_SWAP_ON "$line"; fi
  if line=$(grep -m 1 -E '\[ERROR (NumCPU|Mem)\]' "$kubeadm_log"); then fail HOST_TOO_SMALL "$line"; fi
  if line=$(grep -m 1 -E '\[ERROR ImagePull\]' "$kubeadm_log"); then pull_failed "$line"; fi
  if line=$(grep -m 1 -E '\[ERROR [A-Za-z0-9-]+\]' "$kubeadm_log"); then fail STEP_FAILED "$line"; fi
  fail STEP_FAILED "$1: $(grep -m 1 -iE '^error|error execution' "$kubeadm_log" || printf 'kubeadm failed')"
}
