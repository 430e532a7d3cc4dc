#!/usr/bin/env bash
# Makes a short-lived token for hosts to join with, and lays out for control planes what they have in common. Values: ttl (how long the
# token lives: 24h), prove (yes: the network of those that join is to be proven), certificates (the cluster's configuration for kubeadm,
# where control planes join), names (that all API servers are to have in their certificates, one a line), fresh (those that join with nothing of an etcd on them, a line "NODE ADDRESS" each), encryption (the file
# with the key for Secrets in etcd, where they get that). Outputs: token, ca_hash, certificate_key, encryption.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# ca_hash prints what kubeadm calls the discovery token's hash: of the public key in the cluster's certificate.
ca_hash() {
  openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum | sed -E 's/^([0-9a-f]{64}).*/sha256:\1/'
}

# lay_out puts the keys of the cluster's certificate authorities into a Secret, encrypted with a key that kubeadm makes and prints:
# no log has it. What lies there ends with the token, or after two hours.
# Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/high-availability/.
lay_out() {
  local key
  (umask 077 && kubeadm init phase upload-certs --upload-certs --config "$KGPU_STEP/values/certificates" </dev/null \
    >"$KGPU_STEP/values/.printed" 2>"$KGPU_STEP/token.log") || {
    rm -f "$KGPU_STEP/values/.printed"
    cat "$KGPU_STEP/token.log" >&2
    fail_transient API_UNREACHABLE 'kubeadm init phase upload-certs failed'
  }
  key=$(grep -xE '[0-9a-f]{64}' "$KGPU_STEP/values/.printed") || key=
  rm -f "$KGPU_STEP/values/.printed"
  [[ -n $key ]] || fail STEP_FAILED 'kubeadm init phase upload-certs printed no key'
  output certificate_key <<<"$key"
}

# name_planes adds the names that all API servers are to have to the configuration by which kubeadm makes certificates of those that join:
# some may have come to the cluster since it was made.
name_planes() {
  local was=$KGPU_STEP/configuration.was config=$KGPU_STEP/configuration name
  if ! kube -n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}' >"$was" || [[ ! -s $was ]]; then
    fail_transient API_UNREACHABLE "the API server does not tell kubeadm's configuration of the cluster"
  fi
  cp "$was" "$config"
  while read -r name; do
    sed -nE "s/^ *- [\"']?([^\"']+)[\"']?\$/\1/p" "$was" | grep -xF -- "$name" >/dev/null || sed -i "/^  certSANs:\$/a\\  - \"$name\"" "$config"
  done < <(value_lines names)
  if cmp -s "$was" "$config"; then return; fi
  kube -n kube-system create configmap kubeadm-config --from-file=ClusterConfiguration="$config" --dry-run=client -o yaml >"$KGPU_STEP/object"
  kube_apply "$KGPU_STEP/object" || fail_transient API_UNREACHABLE "kubeadm's configuration of the cluster does not take names"
}

# forget_lost takes members out of etcd that hosts with nothing of an etcd had in a former life: while it misses one, etcd takes no new
# one.
forget_lost() {
  local node address
  while read -r node address; do
    etcd_forget "$node" "$address"
  done < <(value_lines fresh)
}

ttl=$(value ttl)
if [[ $(value_or prove no) == yes ]]; then network_unproven; fi
wait_api
[[ ! -f $KGPU_STEP/values/certificates ]] || lay_out
[[ ! -f $KGPU_STEP/values/names ]] || name_planes
forget_lost
secrets=$(value_or encryption '')
[[ -z $secrets ]] || base64 -w 0 "$secrets" | output encryption
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
