#!/usr/bin/env bash
# Gives this control plane, which has its certificates and manifests, the data of a snapshot, and keeps the data that it had. While
# etcd has none, its manifest is away: after a boot, nothing starts on empty data. Values: criSocket; sums (of the files that were sent);
# node (its name); address; peers (all members, as etcd has them); token (of the new etcd cluster); upgrade (yes: the data is of another
# version of Kubernetes than this control plane, which kubeadm has to bring to its own).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

if ! restored; then
  restore_check
  restore_undone
  restore_files
  image=$(etcd_image)
  [[ -n $image ]] || fail RESTORE_FAILED "$etcd_manifest names no image"
  etcd_tools "$image" "$(value criSocket)" "$restore_dir/tools" etcdutl || fail RESTORE_FAILED "$tools_missing"
  etcd_make "$restore_dir/tools" "$(value node)" "$(value address)" "$(value peers)" "$(value token)"
  if [[ -e $etcd_manifest ]]; then restore_save etcd.yaml <"$etcd_manifest"; fi
  rm -f "$etcd_manifest"
  sync -f /etc/kubernetes
  planes_off
  etcd_keep
  etcd_place
  restore_pki
  key=$(sed -n 's/^ *- --encryption-provider-config=//p' /etc/kubernetes/manifests/kube-apiserver.yaml)
  if [[ -n $key && -e $restore_dir/files/encryption.yaml ]]; then put_file "$key" 600 <"$restore_dir/files/encryption.yaml"; fi
  settle /var/lib/etcd 'the data of the snapshot'
  if [[ -n $(value_or upgrade '') ]]; then upgrade_begins plane; fi
  restore_done
fi
if [[ -e $restore_dir/etcd.yaml ]]; then
  install -m 600 "$restore_dir/etcd.yaml" "$etcd_manifest.kgpu-new"
  mv "$etcd_manifest.kgpu-new" "$etcd_manifest"
fi
systemctl start kubelet.service
wait_local_api
