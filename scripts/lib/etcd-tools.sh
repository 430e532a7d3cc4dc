# shellcheck shell=bash
# The tools of etcd, as its image has them.
etcd_manifest=/etc/kubernetes/manifests/etcd.yaml
restore_dir=/var/lib/kgpu/restore
tools_at=/run/kgpu-etcd-image # where containerd shows an image: in no folder that a later step removes while it is mounted

# etcd_image prints the image that this control plane's etcd runs, also while a restore has its manifest.
etcd_image() {
  local file
  for file in "$etcd_manifest" "$restore_dir/etcd.yaml"; do
    if [[ -e $file ]]; then
      sed -n "s/^ *image: *//; t found; b; :found; s/[\"']//g; p; q" "$file"
      return
    fi
  done
}

# etcd_tools IMAGE CRI_SOCKET DIRECTORY TOOL... puts etcdctl and etcdutl there, as they are in etcd's image: nobody has to download them,
# and they have its version. Images of older releases have no etcdutl. Where one of these is not to be had, $tools_missing says why;
# it returns 75 where containerd does not show the image, which may pass.
tools_missing=
etcd_tools() {
  local tool
  rm -rf "$3"
  (umask 077 && mkdir -p "$3")
  if [[ $2 == *containerd.sock ]]; then
    tools_of_containerd "$1" "$3"
  else
    tools_of_docker "$1" "$3"
  fi || return
  for tool in "${@:4}"; do
    tools_missing="the image $1 has no $tool"
    [[ -x $3/$tool ]] || return
  done
}

tools_of_containerd() {
  local tool
  tools_missing="containerd does not show what is in the image $1"
  tools_unmount # of a step that was killed
  (umask 077 && mkdir -p "$tools_at")
  timeout 120 ctr -n k8s.io images mount "$1" "$tools_at" >/dev/null || return 75
  for tool in etcdctl etcdutl; do
    [[ ! -e $tools_at/usr/local/bin/$tool ]] || cp "$tools_at/usr/local/bin/$tool" "$2/$tool" || return
  done
  tools_unmount
}

tools_unmount() {
  [[ -d $tools_at ]] || return 0
  timeout 60 ctr -n k8s.io images unmount --rm "$tools_at" >/dev/null 2>&1 || umount "$tools_at" 2>/dev/null || true
  rmdir "$tools_at" 2>/dev/null || true
}

tools_of_docker() {
  local id tool
  tools_missing="docker does not show what is in the image $1"
  id=$(timeout 120 docker create --label kgpu=etcd-tools "$1" etcdctl) || return
  for tool in etcdctl etcdutl; do timeout 120 docker cp -q "$id:/usr/local/bin/$tool" "$2/$tool" || true; done
  # Those of steps that were killed go, too.
  timeout 60 docker ps -aq --filter label=kgpu=etcd-tools | xargs -r timeout 60 docker rm -fv >/dev/null || true
}

# etcd_ctl TOOLS ARG... asks the etcd of this control plane.
etcd_ctl() {
  local pki=/etc/kubernetes/pki/etcd
  ETCDCTL_API=3 "$1/etcdctl" --endpoints=https://127.0.0.1:2379 --cacert="$pki/ca.crt" --cert="$pki/healthcheck-client.crt" \
    --key="$pki/healthcheck-client.key" "${@:2}"
}
