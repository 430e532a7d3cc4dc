#!/usr/bin/env bash
# Keeps what etcd has, before an upgrade changes it: in /var/lib/kgpu/snapshots, for root alone, the newest three. It is what
# `etcdctl snapshot save` writes, and `etcdutl snapshot restore` reads. Values: version (that the cluster has now).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(wanted_version)
dir=/var/lib/kgpu/snapshots
pki=/etc/kubernetes/pki
kept=3

# etcd_says PATH asks the etcd of this host. Not every image of it has etcdctl; its gateway has the same, in JSON.
etcd_says() {
  curl -fsS --noproxy '*' --max-time 900 --cacert "$pki/etcd/ca.crt" --cert "$pki/apiserver-etcd-client.crt" --key "$pki/apiserver-etcd-client.key" \
    -X POST -d '{}' "https://127.0.0.1:2379$1"
}

# whole FILE tells whether a snapshot is all there: its last 32 bytes are the sum of the others.
whole() {
  local size sum
  size=$(stat -c %s "$1")
  [[ $size -gt 32 ]] || return 1
  read -r sum _ < <(head -c $((size - 32)) "$1" | sha256sum)
  [[ $(tail -c 32 "$1" | od -An -v -t x1 | tr -d ' \n') == "$sum" ]]
}

if [[ ! -e /etc/kubernetes/manifests/etcd.yaml ]]; then
  warning 'the etcd of this cluster is not kubeadm'\''s: keep a snapshot of it yourself'
  exit 0
fi
mkdir -p "$dir"
chmod 700 "$dir"
new=$dir/.new
umask 077
if ! etcd_says /v3/maintenance/snapshot 2>"$KGPU_STEP/errors" | sed -nE 's/.*"blob":"([^"]*)".*/\1/p' | base64 -d >"$new"; then
  fail_transient UPGRADE_SNAPSHOT "etcd gives no snapshot: $(tail -n 1 "$KGPU_STEP/errors")"
fi
whole "$new" || fail_transient UPGRADE_SNAPSHOT 'the snapshot that came of etcd is not whole'
sync -d "$new"
mv -f "$new" "$dir/etcd-$version.db"
sync -d "$dir"
find "$dir" -maxdepth 1 -name 'etcd-*.db' -printf '%T@ %p\n' | sort -rn | tail -n +$((kept + 1)) | cut -d ' ' -f 2 | xargs -r rm -f
echo "kept: $dir/etcd-$version.db, $(stat -c %s "$dir/etcd-$version.db") bytes"
