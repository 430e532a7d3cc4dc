# shellcheck shell=bash
# etcd: data made of a snapshot. kubeadm keeps the data in /var/lib/etcd/member.

# etcd_make TOOLS NAME ADDRESS PEERS TOKEN makes data of the snapshot, beside the data of etcd. Revisions go on far beyond those that
# were given since the snapshot, and those are marked as compacted: whoever watches looks at everything anew.
# Source: https://etcd.io/docs/v3.6/op-guide/recovery/
etcd_make() {
  local new=/var/lib/etcd/.kgpu-restore
  rm -rf "$new"
  claim_tree /var/lib/etcd
  (umask 077 && mkdir -p /var/lib/etcd)
  chmod 700 /var/lib/etcd
  "$1/etcdutl" snapshot restore "$restore_dir/etcd.db" --data-dir "$new" --name "$2" --initial-advertise-peer-urls "https://$3:2380" \
    --initial-cluster "$4" --initial-cluster-token "$5" --bump-revision 1000000000 --mark-compacted >"$KGPU_STEP/errors" 2>&1 ||
    fail RESTORE_FAILED "etcdutl cannot make data of the snapshot: $(tail -n 1 "$KGPU_STEP/errors")"
  sync -f "$new"
}

# planes_off ends the programs of the control plane. Nobody but the kubelet, which is stopped, starts them again.
planes_off() {
  local tries process
  local -a left
  systemctl stop kubelet.service 2>/dev/null || true
  for ((tries = 0; tries < 60; tries++)); do
    left=()
    for process in /proc/[0-9]*; do
      ! of_control_plane "$process" || left+=("${process#/proc/}")
    done
    [[ ${#left[@]} -gt 0 ]] || return 0
    if [[ $tries -eq 0 ]]; then kill -TERM "${left[@]}" 2>/dev/null || true; fi
    if [[ $tries -eq 5 ]]; then kill -KILL "${left[@]}" 2>/dev/null || true; fi
    sleep 1
  done
  fail RESTORE_FAILED "etcd or the API server does not end: processes ${left[*]}"
}

# of_control_plane DIRECTORY tells whether a process, by its directory in /proc, is one of the programs of this host's control plane, in a
# pod.
of_control_plane() {
  local name
  { read -r name <"$1/comm"; } 2>/dev/null || return 1
  [[ $name == @(etcd|kube-apiserver|kube-controller|kube-scheduler) ]] && in_own_network "$1" && grep -q kubepods "$1/cgroup" 2>/dev/null
}

# etcd_keep moves the data that etcd has aside, once for each restore: kgpu reset removes it.
etcd_keep() {
  local before
  [[ -s $restore_dir/before ]] || printf '/var/lib/etcd.before-%s\n' "$(date -u +%Y%m%d-%H%M%S)" | restore_save before
  read -r before <"$restore_dir/before"
  etcd_data || return 0
  if [[ -d $before/member ]]; then
    rm -rf /var/lib/etcd/member # of a try that was cut off: what was there before is kept already
    return
  fi
  record_once tree "$before"
  rm -rf "$before"
  (umask 077 && mkdir -p "$before")
  mv /var/lib/etcd/member "$before/member"
  sync -f "$before"
  echo "the data that etcd had is in $before"
}

# etcd_place puts the data that etcd_make made where etcd looks for it.
etcd_place() {
  mv /var/lib/etcd/.kgpu-restore/member /var/lib/etcd/member
  rm -rf /var/lib/etcd/.kgpu-restore
  sync -f /var/lib/etcd
}

# restore_save NAME keeps standard input in the folder of the restore, whole or not at all.
restore_save() {
  (umask 077 && cat >"$restore_dir/$1.new")
  sync -d "$restore_dir/$1.new"
  mv "$restore_dir/$1.new" "$restore_dir/$1"
  sync -d "$restore_dir"
}

# restored tells whether this control plane has the data, as a member of the etcd that the step is to make.
restored() {
  [[ -e $restore_dir/restored && $(<"$restore_dir/restored") == "$(value token) $(value peers)" ]]
}

# restore_done remembers that it has: from now on its etcd may run, and must not begin anew with the snapshot while the others go on.
restore_done() {
  printf '%s %s\n' "$(value token)" "$(value peers)" | restore_save restored
}

# restore_undone remembers that it has not any more, where it had: its etcd may run, so that no other member may go on with that one.
restore_undone() {
  [[ ! -e $restore_dir/restored ]] || restore_save restored <<<none
}

# restore_check fails unless the files that were sent are those of the archive.
restore_check() {
  local name sum
  while read -r sum name; do
    [[ -f $restore_dir/$name && $(sha256sum <"$restore_dir/$name") == "$sum  -" ]] ||
      fail RESTORE_FAILED "$restore_dir/$name is not what the archive has"
  done < <(value_lines sums)
}

# restore_files puts the files of a control plane that were in the archive into the restore's folder.
restore_files() {
  local to=$restore_dir/files name
  rm -rf "$to"
  (umask 077 && mkdir -p "$to")
  for name in pki/{ca,front-proxy-ca,etcd/ca}.{crt,key} pki/sa.{key,pub} encryption.yaml; do
    tar -xf "$restore_dir/files.tar" -C "$to" --no-same-owner "$name" 2>/dev/null || [[ $name == encryption.yaml ]] ||
      fail RESTORE_FAILED "the archive has no $name"
  done
}

# restore_pki gives this host the cluster's identity: its authorities, and the key that signs service accounts' tokens. Certificates that
# these have signed are made anew, for the addresses of now.
restore_pki() {
  local name
  for name in {ca,front-proxy-ca,etcd/ca}.{crt,key} sa.{key,pub}; do
    cmp -s "$restore_dir/files/pki/$name" "/etc/kubernetes/pki/$name" ||
      install -D -m "$([[ $name == *.key ]] && echo 600 || echo 644)" "$restore_dir/files/pki/$name" "/etc/kubernetes/pki/$name"
  done
  sync -f /etc/kubernetes
}

# not_taken REASON ends a step for what a backup or a snapshot lacks, as $backup_failed says; a status of 75 may pass.
not_taken() {
  [[ $? -ne 75 ]] || fail_transient "$1" "$backup_failed"
  fail "$1" "$backup_failed"
}
