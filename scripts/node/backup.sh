#!/usr/bin/env bash
# Makes a backup of the cluster on this control plane, which `kgpu restore` takes: kgpu put it here for `backup` in the inventory, and
# kgpu-backup.timer runs it. The unit has in its environment KGPU_TO, the directory for archives, KGPU_KEEP, how many of them stay, KGPU_CLUSTER
# and KGPU_NODE, the names of both, KGPU_SOCKET, the container runtime's, and KGPU_SETTINGS, what the cluster was made with, in JSON.
set -euo pipefail
umask 077
state=/var/lib/kgpu/scheduled # how the last backups went; kgpu status and kgpu doctor read it
work=$state/work
mark=$KGPU_TO/.kgpu-backups-$KGPU_NODE     # that this is the directory, and not the place where it is not mounted
part=$KGPU_TO/.kgpu-backup-$KGPU_NODE.part # an archive that is not whole yet
patience=3600                              # seconds for a kgpu that is at work
retries=300                                # seconds for what may pass

kube() {
  HOME=$work timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s "$@"
}

# save NAME keeps standard input in the state, whole or not at all.
save() {
  cat >"$state/$1.new"
  sync -d "$state/$1.new"
  mv -f "$state/$1.new" "$state/$1"
}

# failed WHAT ends the backup, and keeps why.
failed() {
  printf '%s\n' "$1" >&2
  printf '%(%s)T\t%s\n' -1 "${1//[$'\t\n\r']/ }" | save failed || true # a full disk
  exit 1
}

# held tells whether a kgpu has the cluster, or left a run that goes on here.
held() (
  ! { exec 6</var/lib/kgpu/operator/lock; } 2>/dev/null || flock --shared --nonblock 6 || exit 0
  for batch in /var/lib/kgpu/run/*/; do
    batch=${batch%/}
    [[ -e $batch/result ]] || ! systemctl is-active -q "kgpu-${batch##*/}.service" || exit 0
  done
  exit 1
)

# await_kgpu waits until no kgpu changes the cluster: a control plane that is just upgraded or restored has nothing to tell.
await_kgpu() {
  local waited
  for ((waited = 0; waited < patience; waited += 5)); do
    if ! held; then return; fi
    [[ $waited -gt 0 ]] || echo 'waiting for a kgpu that is at work'
    sleep 5
  done
  failed "a kgpu has been at work on the cluster for $((patience / 60)) minutes"
}

# patiently COMMAND... does what returns 75 where it may go well later: etcd or the API server is just starting. $backup_failed says what is
# waited for.
patiently() {
  local waited status
  for ((waited = 0; ; waited += 5)); do
    status=0
    "$@" || status=$?
    if [[ $status != 75 || $waited -ge $retries ]]; then return "$status"; fi
    # shellcheck disable=SC2154 # the library's
    [[ $waited -gt 0 ]] || printf 'trying again: %s\n' "$backup_failed"
    sleep 5
  done
}

# file_json NAME prints the line of the manifest for a file.
file_json() {
  printf '{"name":"%s","size":%s,"sha256":"%s"}' "$1" "$(stat -c %s "$1")" "$(sha256sum <"$1" | cut -d ' ' -f 1)"
}

# nodes keeps what the manifest says of the hosts.
nodes() {
  backup_failed='the API server does not tell the nodes'
  # shellcheck disable=SC2016 # Go's template
  kube get nodes -o go-template='{{range .items}}{{$node := .metadata.name}}{{range .status.addresses}}{{if eq .type "InternalIP"}}{"id":"{{$node}}","node":"{{$node}}","address":"{{.address}}","role":""},{{end}}{{end}}{{end}}' >"$work/nodes" || return 75
}

# manifest FILE... prints the manifest of an archive with these files, as bootstrap/archive reads it.
manifest() {
  local file ca version endpoint etcd encrypted=false files='' revision keys
  ca=$(openssl x509 -in /etc/kubernetes/pki/ca.crt -noout -pubkey | openssl pkey -pubin -outform der | sha256sum | cut -d ' ' -f 1)
  version=$(sed -n 's/^ *image: .*:v\([0-9.]*\).*/\1/p' /etc/kubernetes/manifests/kube-apiserver.yaml)
  endpoint=$(sed -n 's|^ *server: https://||p' /etc/kubernetes/admin.conf | head -n 1)
  etcd=$(sed -n 's/^etcd\t//p' "$work/about")
  ! grep -q '^encrypted' "$work/about" || encrypted=true
  revision=$(sed -n 's/.*"revision":\([0-9]*\).*/\1/p' "$work/status")
  keys=$(sed -n 's/.*"totalKey":\([0-9]*\).*/\1/p' "$work/status")
  for file in "$@"; do files+=$(file_json "$file"),; done
  printf '{"format":1,"kgpu":"%s","made":"%s","cluster":"%s","ca":"%s","kubernetes":"%s","etcd":"%s","endpoint":"%s","encrypted":%s,' \
    'a timer' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$KGPU_CLUSTER" "$ca" "$version" "$etcd" "$endpoint" "$encrypted"
  printf '"settings":%s,"revision":%s,"keys":%s,"hosts":[%s],"files":[%s]}\n' "$KGPU_SETTINGS" "${revision:-0}" "${keys:-0}" "$(sed 's/,$//' "$work/nodes")" "${files%,}"
}

# take puts all that the archive has into the work folder.
take() {
  local ledger=hosts/$KGPU_NODE/ledger.tar
  [[ ! -e /var/lib/kgpu/restore ]] || failed 'a restore of the cluster has begun and has not ended'
  # shellcheck disable=SC2154 # the library's
  backup_room "$work" || failed "$backup_failed"
  patiently backup_snapshot "$KGPU_SOCKET" "$work" || failed "$backup_failed"
  backup_version "$work" || failed "$backup_failed"
  patiently backup_files "$work" || failed "$backup_failed"
  patiently nodes || failed "$backup_failed"
  mkdir -p "$work/${ledger%/*}"
  tar -C /var/lib/kgpu -cf "$work/$ledger" ledger || failed 'the ledger cannot be packed'
  cd "$work"
  entries=(etcd.db files.tar "$ledger")
  manifest "${entries[@]}" >manifest.json || failed 'the manifest cannot be written'
  sha256sum <manifest.json | cut -d ' ' -f 1 >manifest.json.sha256
  entries+=(manifest.json manifest.json.sha256)
}

# written writes the archive, reads it again from where it is, and fails unless all of it is there.
written() {
  local entry
  tar --format=ustar --owner=0 --group=0 --numeric-owner -cf - "${entries[@]}" 2>"$work/errors" | gzip >"$part" 2>>"$work/errors" || return
  sync -f "$part" 2>>"$work/errors" || return
  for entry in "${entries[@]}"; do
    tar -xzOf "$part" "$entry" 2>>"$work/errors" | cmp -s - "$entry" || {
      [[ -s $work/errors ]] || echo "$entry is not in the archive as it was written" >"$work/errors"
      return 1
    }
  done
}

# forget_old removes the oldest archives that this control plane made of this cluster, beyond those that stay with the new one.
forget_old() {
  local name
  find "$KGPU_TO" -maxdepth 1 -type f -printf '%f\n' | grep -E "^kgpu-backup-$KGPU_CLUSTER-${KGPU_NODE//./\\.}-[0-9]{8}-[0-9]{6}Z\.tar\.gz$" |
    grep -vxF "${archive##*/}" | sort | head -n "-$((KGPU_KEEP - 1))" | while IFS= read -r name; do rm -f -- "$KGPU_TO/$name"; done || true
}

# clear_up removes what this backup leaves when it ends, however it ends.
# shellcheck disable=SC2317 # the trap calls it
clear_up() {
  cd /
  rm -rf "$work"
  rm -f "$part"
}

mkdir -p "$state"
exec 5>"$state/lock"
flock --nonblock 5 || exit 0 # another one is just made
trap clear_up EXIT
trap 'exit 143' TERM INT
rm -rf "$work" # of one that was killed
mkdir "$work"
[[ -e $mark ]] || failed "$KGPU_TO has no file ${mark##*/}, with which kgpu marked it: what belongs there is not mounted"
rm -f "$part"
await_kgpu
take
archive=$KGPU_TO/kgpu-backup-$KGPU_CLUSTER-$KGPU_NODE-$(date -u +%Y%m%d-%H%M%SZ).tar.gz
written || failed "the archive cannot be written to $KGPU_TO: $(tail -n 1 "$work/errors")"
mv -f "$part" "$archive"
sync -f "$archive"
printf '%(%s)T\t%s\n' -1 "$archive" | save good
rm -f "$state/failed"
forget_old
echo "made: $archive, $(stat -c %s "$archive") bytes"
