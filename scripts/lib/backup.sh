# shellcheck shell=bash
# What a backup takes of a control plane. What fails says why in $backup_failed. The caller has umask 077, and a function kube.
backup_failed=

# backup_room DIRECTORY fails where there is no room for a snapshot.
backup_room() {
  local free size
  free=$(df --output=avail -k "$1" | tail -n 1)
  size=$(du -sk /var/lib/etcd/member | cut -f 1)
  backup_failed="$1 needs room for a snapshot of etcd, whose data is $((size / 1024)) MiB"
  [[ $free -gt $((size + 262144)) ]]
}

# backup_snapshot CRI_SOCKET DIRECTORY takes a snapshot of etcd, checked: etcd.db, and what the check tells of it as status. The tools stay
# in the folder tools. It returns 75 where etcd or containerd does not do its part, which may pass.
backup_snapshot() {
  local image errors=$2/errors check=etcdutl status=0
  image=$(etcd_image)
  backup_failed="$etcd_manifest names no image"
  [[ -n $image ]] || return 1
  etcd_tools "$image" "$1" "$2/tools" etcdctl || status=$?
  backup_failed=$tools_missing
  [[ $status == 0 ]] || return "$status"
  if ! etcd_ctl "$2/tools" snapshot save "$2/etcd.db" >"$errors" 2>&1; then
    backup_failed="etcd gives no snapshot: $(tail -n 1 "$errors")"
    return 75
  fi
  [[ -x $2/tools/etcdutl ]] || check=etcdctl
  if ! ETCDCTL_API=3 "$2/tools/$check" snapshot status "$2/etcd.db" --write-out json >"$2/status" 2>"$errors"; then
    backup_failed="the snapshot of etcd is not whole: $(tail -n 1 "$errors")"
    return 1
  fi
  rm -f "$errors"
}

# backup_version DIRECTORY tells etcd's version in about, and removes the tools.
backup_version() {
  backup_failed="the image $(etcd_image) has no etcdutl, without which nothing can be restored"
  [[ -x $1/tools/etcdutl ]] || return 1
  "$1/tools/etcdutl" version | sed -n 's/^etcdutl version: */etcd\t/p' >"$1/about"
  rm -rf "$1/tools"
}

# backup_files DIRECTORY packs what makes another machine this control plane as files.tar: keys, certificates, settings. about says whether
# Secrets are encrypted. It returns 75 where the API server does not answer, which may pass.
backup_files() {
  local key from=$1/files
  backup_failed="the files of the control plane cannot be copied to $1"
  rm -rf "$from"
  mkdir "$from" && cp -a /etc/kubernetes/pki "$from/pki" || return 1
  if ! kube -n kube-system get configmap kubeadm-config -o yaml >"$from/kubeadm-config.yaml"; then
    backup_failed='the API server does not tell the settings of kubeadm'
    return 75
  fi
  key=$(sed -n 's/^ *- --encryption-provider-config=//p' /etc/kubernetes/manifests/kube-apiserver.yaml)
  if [[ -n $key ]]; then
    cp "$key" "$from/encryption.yaml" && printf 'encrypted\tyes\n' >>"$1/about" || return 1
  fi
  tar -C "$from" -cf "$1/files.tar" pki kubeadm-config.yaml ${key:+encryption.yaml} || return 1
  rm -rf "$from"
}
