# shellcheck shell=bash
# The static pods of a control plane, by their processes and manifests.

# static_pod NAME prints what tells the process of a static pod from all others: the boot, its number, and when it began. It prints
# nothing where the pod does not run.
static_pod() {
  local dir
  local -a words
  for dir in /proc/[0-9]*; do
    { mapfile -d '' -t words <"$dir/cmdline"; } 2>/dev/null || continue
    [[ ${words[0]:-} == "$1" && "${words[*]}" == */etc/kubernetes/* ]] || continue
    in_own_network "$dir" || continue
    process_identity "${dir##*/}"
    return
  done
}

# in_own_network DIRECTORY tells whether a process, by its directory in /proc, has the host's own network, as docker and static pods do.
# What runs in a container, such as the control plane of a cluster that kind made, is none of the host's.
in_own_network() {
  [[ $1/ns/net -ef /proc/self/ns/net ]]
}

# process_identity PID prints the boot, the number of a process, and when it began, in ticks since the boot. One that has ended, and
# of which nobody has taken notice yet, has none.
process_identity() {
  local boot stat
  local -a fields
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
  [[ $stat != *') Z '* ]] || return 0
  read -r boot </proc/sys/kernel/random/boot_id
  read -r -a fields <<<"${stat##*) }" # a program's name may have blanks; the state is the third field
  printf '%s %s %s\n' "$boot" "$1" "${fields[19]}"
}

# process_lives IDENTITY tells whether that very process is still there.
process_lives() {
  local pid
  read -r _ pid _ <<<"$1"
  [[ $pid =~ ^[0-9]+$ && $(process_identity "$pid") == "$1" ]]
}

# api_server_address prints where this host's API server listens, as host:port, if it serves the certificate that kubeadm made.
api_server_address() {
  local value address='' port=6443 ours=
  while read -r _ value _; do
    case $value in
      --advertise-address=*) address=${value#*=} ;;
      --secure-port=*) port=${value#*=} ;;
      --tls-cert-file=/etc/kubernetes/pki/apiserver.crt) ours=yes ;;
    esac
  done 2>/dev/null </etc/kubernetes/manifests/kube-apiserver.yaml
  [[ $address != *:* ]] || address="[$address]"
  [[ -z $address || -z $ours ]] || printf '%s:%s\n' "$address" "$port"
}

# local_api tells whether this host's own API server is ready, and its etcd, whoever else answers at the cluster's endpoint.
local_api() {
  [[ $(kube --server "https://$(api_server)" get --raw /readyz 2>/dev/null) == ok ]]
}

# api_server prints where this host's API server listens.
api_server() {
  local at
  at=$(api_server_address)
  [[ -n $at ]] || at=$(sed -nE 's|^ *server: https://(.*)$|\1|p' /etc/kubernetes/admin.conf)
  printf '%s\n' "$at"
}

# wait_local_api returns when this host's own API server is ready: another one has its turn then.
wait_local_api() {
  local told=
  until local_api; do
    [[ $(seconds_left) -gt 0 ]] || fail_transient API_UNREACHABLE 'the API server of this control plane and its etcd do not get ready in time'
    [[ -n $told ]] || waiting 'the API server of this control plane and its etcd'
    told=yes
    pause
  done
}
