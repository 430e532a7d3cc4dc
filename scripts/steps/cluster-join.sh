#!/usr/bin/env bash
# Joins this host to the cluster. Values: kubeadm (its configuration, secret), endpoint (host:port), criSocket, node
# (its name; its host name where not given), flags (of kubeadm, one a line).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
endpoint=$(value endpoint)
socket=$(value criSocket)
mapfile -t flags < <(value_lines flags)
node=$(value_or node "${HOSTNAME,,}")

# member tells whether this host is the node it should be, by what the cluster says.
member() {
  grep -qF "server: https://$endpoint" /etc/kubernetes/kubelet.conf 2>/dev/null &&
    timeout 15 kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=10s get --raw "/api/v1/nodes/$node" >/dev/null 2>&1
}

# shellcheck disable=SC2016 # the inner shell expands
reachable() {
  timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$(tr -d '[]' <<<"${endpoint%:*}")" "${endpoint##*:}" 2>/dev/null
}

tries=0
until reachable; do
  tries=$((tries + 1))
  if [[ $tries -ge 10 ]]; then fail_transient API_UNREACHABLE "nothing answers at $endpoint from here"; fi
  if [[ $tries -eq 1 ]]; then waiting "the API server at $endpoint"; fi
  sleep 2
done
if ledger_has kubeadm; then
  if ledger_has kubeadm join-done && member; then
    unit_enable kubelet.service
    echo 'this host is a member already'
    exit 0
  fi
  echo 'an earlier membership is incomplete or of another cluster: resetting this host first'
  leave_cluster "$socket"
elif [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/manifests/kube-apiserver.yaml ]]; then
  fail HOST_FOREIGN_CLUSTER 'this host belongs to a cluster that kgpu did not make'
fi

remember_kubernetes_sysctls
record kubeadm join
kubeadm join --config "$config" "${flags[@]}" </dev/null 2>&1 | hide_tokens | tee "$kubeadm_log" || kubeadm_failed 'kubeadm join'
record kubeadm join-done
