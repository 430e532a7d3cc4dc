#!/usr/bin/env bash
# Puts what a backup takes of this host into a folder that only root reads: its ledger and, on a control plane, a snapshot of etcd,
# checked, and the files that the cluster is known by. Values: criSocket; etcd (yes on the control plane whose snapshot it is).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

dir=/var/lib/kgpu/backup
rm -rf "$dir" # of a backup that was cut off
umask 077
mkdir -p "$dir"

# take_snapshot takes the snapshot and tells what was found when it was checked.
take_snapshot() {
  etcd_snapshot "$dir" BACKUP_FAILED
  [[ -x $dir/tools/etcdutl ]] || fail BACKUP_FAILED "the image $(etcd_image) has no etcdutl, without which nothing can be restored"
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
