#!/usr/bin/env bash
# Renews the certificates of this control plane, and restarts its static pods one after the other: some of them read their own only
# when they start. Values: kubeadm (its configuration), renew (a line each: all, what kubeadm renews, by the names that it has;
# apiserver, the API server's, by the names of the configuration; none: what an earlier renewal left to do), restart (static pods
# that are to be restarted in any case, a line each), alone (yes: etcd has no majority before others have new certificates, too).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

config=$KGPU_STEP/values/kubeadm
before=/var/lib/kgpu/certificates # a copy of what is replaced, as long as what replaces it is not whole
stale=/var/lib/kgpu/stale-pods    # a file for each static pod that runs with certificates which were replaced, with its process
kubeconfigs=(admin super-admin controller-manager scheduler)
pods=(etcd kube-apiserver kube-controller-manager kube-scheduler)

# keep copies what is replaced, whole or not at all.
keep() {
  local name
  rm -rf "$before.new"
  (umask 077 && mkdir -p "$before.new")
  cp -a /etc/kubernetes/pki "$before.new/"
  for name in "${kubeconfigs[@]}"; do
    [[ ! -f /etc/kubernetes/$name.conf ]] || cp -a "/etc/kubernetes/$name.conf" "$before.new/"
  done
  sync -f "$before.new"
  mv "$before.new" "$before"
  sync -d "${before%/*}"
}

# put_back brings back what is in the copy: kubeadm writes a key and its certificate one after the other, and syncs neither.
put_back() {
  cp -a --remove-destination "$before/pki/." /etc/kubernetes/pki/
  cp -a --remove-destination "$before"/*.conf /etc/kubernetes/
  settle /etc/kubernetes 'the certificates from before'
}

# drop_copy forgets the copy, in one rename, so that half of one never remains.
drop_copy() {
  settle /etc/kubernetes 'the copy of the former certificates stays'
  rm -rf "$before.old"
  mv "$before" "$before.old"
  sync -d "${before%/*}"
  rm -rf "$before.old"
}

# give_up REASON DETAIL leaves everything as it was.
give_up() {
  put_back
  drop_copy
  fail "$1" "$2"
}

# kubeadm_does COMMAND... runs kubeadm, or leaves everything as it was.
kubeadm_does() {
  run_kubeadm "$@" || give_up CERTIFICATE_NOT_RENEWED "${*:1:4}: $(grep -m 1 -iE '^error|error execution' "$kubeadm_log" || echo 'kubeadm failed')"
}

# replaced FILE tells whether a file below /etc/kubernetes is another than in the copy.
replaced() {
  ! cmp -s "$before/$1" "/etc/kubernetes/$1"
}

# renew_files has kubeadm make new certificates. For those whose authority's key is not on this host it does nothing, and says so.
renew_files() {
  local what
  for what in "$@"; do
    case $what in
      all) kubeadm_does kubeadm certs renew all --config "$config" ;;
      apiserver)
        rm -f /etc/kubernetes/pki/apiserver.{crt,key}
        kubeadm_does kubeadm init phase certs apiserver --config "$config"
        ;;
      *) fail STEP_FAILED "unknown kind of renewal: $what" ;;
    esac
  done
  if ! replaced pki/apiserver.crt; then
    give_up CERTIFICATE_NOT_RENEWED "kubeadm made no new certificate of the API server: $(grep -m 1 -i 'external' "$kubeadm_log" || echo 'it does not say why')"
  fi
}

# owe POD notes, durably, which process has what was replaced. One that does not run is owed nothing.
owe() {
  local process
  process=$(static_pod "$1")
  [[ -n $process ]] || return 0
  (umask 077 && mkdir -p "$stale")
  printf '%s\n' "$process" >"$stale/$1"
  sync -d "$stale/$1" "$stale" "${stale%/*}"
}

# owe_restarts notes the static pods that have what was replaced.
owe_restarts() {
  local file
  for file in apiserver apiserver-etcd-client apiserver-kubelet-client front-proxy-client; do
    if replaced "pki/$file.crt"; then owe kube-apiserver && break; fi
  done
  for file in server peer; do
    if [[ -f $before/pki/etcd/$file.crt ]] && replaced "pki/etcd/$file.crt"; then owe etcd && break; fi
  done
  if replaced controller-manager.conf; then owe kube-controller-manager; fi
  if replaced scheduler.conf; then owe kube-scheduler; fi
}

# renew makes new certificates, once for all tries of this step, and notes what is left to do then.
renew() {
  keep
  renew_files "$@"
  settle /etc/kubernetes 'the new certificates'
  owe_restarts
  drop_copy
  : >"$KGPU_STEP/renewed"
}

# wait_until WHAT COMMAND... returns when the command succeeds.
wait_until() {
  local what=$1 told=
  shift
  until "$@"; do
    [[ $(seconds_left) -gt 0 ]] || fail_transient API_UNREACHABLE "$what does not happen in time"
    [[ -n $told ]] || waiting "$what"
    told=yes
    pause
  done
}

# wait_ready returns when this control plane works again, where it can before others do.
wait_ready() {
  [[ $(value_or alone no) == yes ]] || wait_local_api
}

# runs_anew POD PROCESS tells whether another process of a static pod runs than this one.
runs_anew() {
  local now
  now=$(static_pod "$1")
  [[ -n $now && $now != "$2" ]]
}

# end_process PROCESS ends a process: after 5 s the hard way, which neither an API server nor an etcd minds. An API server whose clients
# have watches would wait for them for a minute, in which it takes no new requests.
end_process() {
  local pid n
  read -r _ pid _ <<<"$1"
  kill "$pid" 2>/dev/null || true
  for ((n = 0; n < 25; n++)); do
    if ! process_lives "$1"; then return; fi
    sleep 0.2
  done
  kill -KILL "$pid" 2>/dev/null || true
}

# restart POD ends the process of a static pod that has what was replaced. The kubelet starts it again, whatever becomes of this
# step; a manifest that is moved away and back would be missed.
restart() {
  local process
  process=$(<"$stale/$1")
  if process_lives "$process"; then
    end_process "$process"
    wait_until "the kubelet to start $1 again" runs_anew "$1" "$process"
  fi
  [[ $1 != kube-apiserver ]] || wait_ready
  rm -f "$stale/$1"
  sync -d "$stale"
}

[[ -f $config ]] || fail STEP_FAILED 'the step has no value called kubeadm'
rm -rf "$before".new "$before".old
[[ -e /etc/kubernetes/admin.conf ]] || fail HOST_HALF_MADE 'there is no /etc/kubernetes/admin.conf'
mapfile -t due < <(value_lines renew)
if [[ -d $before ]]; then
  echo 'an earlier renewal was cut off: what it replaced is put back first'
  put_back
  drop_copy
  [[ ${#due[@]} -gt 0 ]] || due=(all)
fi
if [[ ${#due[@]} -gt 0 && ! -e $KGPU_STEP/renewed ]]; then renew "${due[@]}"; fi
if [[ ! -e $KGPU_STEP/owed ]]; then
  mapfile -t also < <(value_lines restart)
  for pod in "${also[@]}"; do [[ -e $stale/$pod ]] || owe "$pod"; done
  : >"$KGPU_STEP/owed"
fi
if [[ -f $stale/kube-apiserver || -f $stale/etcd ]]; then give_virtual_ip_away; fi
# What ended because its certificates did is not started again for minutes: the kubelet forgets that when it begins anew.
if [[ -z $(static_pod kube-apiserver) ]]; then unit_restart kubelet.service; fi
for pod in "${pods[@]}"; do
  [[ ! -f $stale/$pod ]] || restart "$pod"
done
wait_ready
