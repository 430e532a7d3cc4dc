#!/usr/bin/env bash
# Puts what a backup takes of this host into a folder that only root reads: its ledger and, on a control plane, a snapshot of etcd,
# checked, and the files that the cluster is known by. Values: criSocket; etcd (yes on the control plane whose snapshot it is).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

dir=/var/lib/kgpu/backup
rm -rf "$dir" # of a backup that was cut off
umask 077
mkdir -p "$dir"

# take_snapshot writes the snapshot and what etcdutl says of it.
take_snapshot() {
  local image free size
  image=$(etcd_image)
  [[ -n $image ]] || fail BACKUP_FAILED "$etcd_manifest names no image"
  free=$(df --output=avail -k "$dir" | tail -n 1)
  size=$(du -sk /var/lib/etcd/member | cut -f 1)
  [[ $free -gt $((size + 262144)) ]] || fail HOST_DISK_FULL "$dir needs room for a snapshot of etcd, whose data is $((size / 1024)) MiB"
  etcd_tools "$image" "$(value criSocket)" "$dir/tools" || fail BACKUP_FAILED "$tools_missing"
  etcd_ctl "$dir/tools" snapshot save "$dir/etcd.db" >"$KGPU_STEP/errors" 2>&1 ||
    fail_transient BACKUP_FAILED "etcd gives no snapshot: $(tail -n 1 "$KGPU_STEP/errors")"
  "$dir/tools/etcdutl" snapshot status "$dir/etcd.db" --write-out json >"$dir/status" 2>"$KGPU_STEP/errors" ||
    fail BACKUP_FAILED "the snapshot of etcd is not whole: $(tail -n 1 "$KGPU_STEP/errors")"
  "$dir/tools/etcdutl" version | sed -n 's/^etcdutl version: */etcd\t/p' >"$dir/about"
  rm -rf "$dir/tools"
  output snapshot <"$dir/status"
}

# take_files packs what makes another machine this control plane: keys, certificates, settings.
take_files() {
  local key from=$dir/files
  mkdir "$from"
  cp -a /etc/kubernetes/pki "$from/pki"
  kube -n kube-system get configmap kubeadm-config -o yaml >"$from/kubeadm-config.yaml" || fail_transient API_UNREACHABLE 'the API server does not tell the settings of kubeadm'
  key=$(sed -n 's/^ *- --encryption-provider-config=//p' /etc/kubernetes/manifests/kube-apiserver.yaml)
  if [[ -n $key ]]; then
    cp "$key" "$from/encryption.yaml"
    printf 'encrypted\tyes\n' >>"$dir/about"
  fi
  tar -C "$from" -cf "$dir/files.tar" pki kubeadm-config.yaml ${key:+encryption.yaml}
  rm -rf "$from"
  output about <"$dir/about"
}

if [[ $(value_or etcd '') == yes ]]; then
  take_snapshot
  take_files
fi
tar -C /var/lib/kgpu -cf "$dir/ledger.tar" ledger
cd "$dir" || exit
for file in *.db *.tar; do
  [[ ! -e $file ]] || printf '%s\t%s\t%s\n' "$file" "$(stat -c %s "$file")" "$(sha256sum <"$file" | cut -d ' ' -f 1)"
done | output files
