#!/usr/bin/env bash
# Makes a short-lived token for workers to join with. Values: ttl (how long it lives: 24h), prove (yes: the network of those that join is
# to be proven). Outputs: token, ca_hash.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# ca_hash prints what kubeadm calls the discovery token's hash: of the public key in the cluster's certificate.
ca_hash() {
  openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum | sed -E 's/^([0-9a-f]{64}).*/sha256:\1/'
}

ttl=$(value ttl)
if [[ $(value_or prove no) == yes ]]; then network_unproven; fi
wait_api
if kubernetes_before 9; then
  token=$(kubeadm token create --kubeconfig /etc/kubernetes/admin.conf --description 'kgpu join' --ttl "$ttl" 2>"$KGPU_STEP/token.log" |
    grep -oE '^[a-z0-9]{6}\.[a-z0-9]{16}$') || {
    cat "$KGPU_STEP/token.log" >&2
    fail_transient API_UNREACHABLE 'kubeadm token create failed'
  }
  kubeadm_warnings <"$KGPU_STEP/token.log"
  output token <<<"$token"
  ca_hash | output ca_hash
  exit 0
fi
join=$(kubeadm token create --kubeconfig /etc/kubernetes/admin.conf --description 'kgpu join' --ttl "$ttl" --print-join-command 2>"$KGPU_STEP/token.log") || {
  cat "$KGPU_STEP/token.log" >&2
  fail_transient API_UNREACHABLE 'kubeadm token create failed'
}
kubeadm_warnings <"$KGPU_STEP/token.log"
read -r -a words <<<"$join"
for ((i = 0; i + 1 < ${#words[@]}; i++)); do
  case ${words[i]} in
    --token) output token <<<"${words[i + 1]}" ;;
    --discovery-token-ca-cert-hash) output ca_hash <<<"${words[i + 1]}" ;;
  esac
done
[[ -s $KGPU_STEP/out/token && -s $KGPU_STEP/out/ca_hash ]] || fail STEP_FAILED 'kubeadm token create printed no token or no hash'
