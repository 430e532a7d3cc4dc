# shellcheck shell=bash
# What the API servers read to defend the cluster: the same on all control planes.

# keep_key FILE has the API server encrypt Secrets with a key that nobody else has, in a file that stays on the control planes: one
# that an earlier try made is kept. Source: https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/
keep_key() {
  local secret
  if ledger_has file "$1" && [[ -s $1 ]]; then return; fi
  secret=$(head -c 32 /dev/urandom | base64 -w 0)
  put_file "$1" 600 < <(printf '%s\n' 'apiVersion: apiserver.config.k8s.io/v1' 'kind: EncryptionConfiguration' resources: \
    '  - resources: [secrets]' '    providers:' '      - secretbox:' "          keys: [{name: kgpu, secret: $secret}]" '      - identity: {}')
}

# secure puts in place what the API server reads to defend the cluster, and makes room for what it writes. Another control plane
# gets the key of the first.
secure() {
  local log key
  install_files
  key=$(value_or encryption '')
  if [[ -z $key ]]; then
    :
  elif [[ -f $KGPU_STEP/values/encryptionConfig ]]; then
    put_file "$key" 600 < <(base64 -d "$KGPU_STEP/values/encryptionConfig")
  else
    keep_key "$key"
  fi
  log=$(value_or auditLog '')
  [[ -n $log ]] || return 0
  make_dir "${log%/*}"
  claim_tree "$log"
  (umask 077 && mkdir -p "$log")
}
