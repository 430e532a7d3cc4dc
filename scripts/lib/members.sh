# shellcheck shell=bash
# Which cluster this host is in, and whether it is the one that the ledger remembers. Facts come before markers: an entry
# says what kgpu did, the certificate of the cluster's CA says where the host is now.

# cluster_ca prints the certificate of the CA of the cluster that this host is in, if it is in one.
cluster_ca() {
  [[ -s /etc/kubernetes/kubelet.conf || -s /etc/kubernetes/admin.conf ]] || return 0
  if [[ -s /etc/kubernetes/pki/ca.crt ]]; then
    cat /etc/kubernetes/pki/ca.crt
  elif [[ -s /etc/kubernetes/kubelet.conf ]]; then
    sed -n '/certificate-authority-data:/{s/.*: *//p;q}' /etc/kubernetes/kubelet.conf | base64 -d
  fi
}

# cluster_changed KIND tells whether this host is in another cluster than the one that the last entry of this kind
# remembers. Entries of what was only begun remember none; but kgpu joins no control planes.
cluster_changed() {
  local last ca
  if [[ $1 == kubeadm && -e /etc/kubernetes/admin.conf ]] && ledger_has kubeadm join && ! ledger_has kubeadm init; then return 0; fi
  last=$(ledger_find "$1" | tail -n 1)
  [[ -n $last && -s $ledger/$last/before/ca.crt ]] || return 1
  ca=$(cluster_ca)
  [[ -n $ca && $ca != "$(<"$ledger/$last/before/ca.crt")" ]]
}

# record_membership KIND WHAT [UID] makes an entry that remembers the cluster and the UID of the host's node object in it.
# What kubeadm wrote, which syncs nothing, is on the disk before: after a power cut, this entry would vouch for empty files.
record_membership() {
  settle /etc/kubernetes "the ledger does not remember $*"
  entry_begin "$@"
  cluster_ca >"$entry/before/ca.crt"
  [[ -s $entry/before/ca.crt ]] || rm -f "$entry/before/ca.crt"
  entry_commit
}

# node_uid NODE KUBECONFIG prints the UID of a node object, or nothing if there is none. A kubelet that has just joined makes it
# in a moment. It fails where the cluster does not tell.
node_uid() {
  local answer tries
  for ((tries = 0; tries < 20; tries++)); do
    if answer=$(timeout 15 kubectl --kubeconfig "$2" --request-timeout=10s get --raw "/api/v1/nodes/$1" 2>"$KGPU_STEP/errors"); then
      [[ ! $answer =~ \"uid\":\ ?\"([0-9A-Za-z-]+)\" ]] || printf '%s\n' "${BASH_REMATCH[1]}"
      return 0
    fi
    if [[ $(seconds_left) -le 0 ]] && ! said_no "$KGPU_STEP/errors"; then return 1; fi
    sleep 1
  done
  said_no "$KGPU_STEP/errors"
}

# etcd_data tells whether there is data of an etcd here.
etcd_data() {
  [[ -d /var/lib/etcd/member && -n $(ls -A /var/lib/etcd/member) ]]
}
