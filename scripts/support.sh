# shellcheck shell=bash
# Prints what helps to find out what is wrong with this host: a line NAME BASE64 for each thing, between kgpu-support=1 and
# end=1. It is read by `bash -s` as root, writes nothing, waits for no program without a time limit, and bounds what each may
# print. It takes no files that are made to hold secrets; kgpu scrubs the others.
set -u
# kubectl keeps its cache below HOME; there can be none.
export HOME=/proc/kgpu-no-home
export SYSTEMD_PAGER='' SYSTEMD_COLORS=0
base=/var/lib/kgpu
most=262144 # bytes of one thing
patience=20 # seconds
lines=2000  # of a journal
echo kgpu-support=1

# entry NAME COMMAND... prints the end of what the command prints.
entry() {
  local name=$1
  shift
  printf '%s ' "$name"
  "$@" </dev/null 2>&1 | tail -c "$most" | base64 -w 0
  echo
}

# take NAME PROGRAM ARG... does so for a program. One that is stuck in the kernel, as nvidia-smi with
# a sick driver, is not to be ended, and neither is what waits for it: it is left behind, and only what reads from it ends.
take() {
  local name=$1
  shift
  if command -v "$1" >/dev/null; then entry "$name" patiently "$@"; else entry "$name" echo "there is no $1 here"; fi
}
patiently() {
  timeout --kill-after=2 "$((patience + 5))" cat < <(limited "$@" 2>&1 </dev/null) || printf '\n[it hangs]\n'
}
limited() {
  local status=0
  timeout --kill-after=2 "$patience" "$@" || status=$?
  [[ $status == 0 ]] || printf '\n[exit status %s]\n' "$status"
}

# show FILE... prints files with their names above them, each from its end.
show() {
  local file
  for file; do
    if [[ -f $file ]]; then
      printf '==> %s\n' "$file"
      tail -c 65536 -- "$file"
      echo
    fi
  done
}

# --- the machine
machine() {
  uname -a
  uptime
  date --utc +%FT%TZ
  show /etc/os-release /proc/cmdline
}
entry machine machine
take memory free -m
take processes ps -eo pid,ppid,user,stat,etime,rss,comm
take df df -hT
take inodes df -hi
take blocks lsblk
take ip-address ip address
take ip-route ip route show table all
take ip-rule ip rule
take sockets ss -Hltnup
entry resolv show /etc/resolv.conf /etc/hosts
take packages dpkg -l 'kube*' 'cri*' 'containerd*' 'docker*' 'runc*' '*nvidia*' 'cuda-toolkit*' 'cudnn*'
entry apt show /var/log/apt/history.log /var/log/unattended-upgrades/unattended-upgrades.log

# --- units and journals
take failed systemctl --failed --no-legend --plain
take units systemctl list-units --all --no-legend --plain 'kgpu-*' 'kubelet*' 'containerd*' 'docker*' 'cri-docker*' 'nvidia-*'
take journal-kernel journalctl --no-pager -k -n "$lines"
for unit in kubelet containerd docker cri-docker nvidia-persistenced nvidia-fabricmanager; do
  take "journal-$unit" journalctl --no-pager -n "$lines" -u "$unit"
done
take journal-kgpu journalctl --no-pager -n "$lines" -u 'kgpu-*'

# --- cards
take lspci lspci -nnk -d 10de:
take nvidia-smi nvidia-smi -q

# --- what kgpu did here
ledger() {
  local dir kind
  for dir in "$base"/ledger/[0-9]*; do
    if [[ -f $dir/kind ]]; then
      read -r kind <"$dir/kind"
      printf '%s %s\t%s\n' "${dir##*/}" "$kind" "$(paste -sd '\t' "$dir/args" 2>/dev/null)"
    fi
  done
}
entry ledger ledger
batches() {
  ls -l --time-style=full-iso "$base/run"
  show "$base/lock" "$base"/run/*/result "$base"/run/*/steps/*/{id,result,failure}
}
if [[ -d $base/run ]]; then entry batches batches; fi
count=0
while read -r batch; do
  count=$((count + 1))
  name=${batch,,}
  if [[ $count -le 5 && $name =~ ^[a-z0-9-]{1,70}$ ]]; then entry "run-$name" show "$base/run/$batch/events"; fi
done < <(ls -t "$base/run" 2>/dev/null)

# --- Kubernetes on this host; the files with keys in them are not among these
entry kubelet-config show /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet \
  /etc/systemd/system/kubelet.service.d/*.conf /usr/lib/systemd/system/kubelet.service.d/*.conf /etc/kubernetes/manifests/*.yaml
entry runtime-config show /etc/containerd/config.toml /etc/containerd/conf.d/*.toml /etc/docker/daemon.json
entry network-config show /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist /run/flannel/subnet.env

# --- the cluster, as its control plane sees it
conf=/etc/kubernetes/admin.conf
if [[ -f $conf ]]; then
  ask() {
    local name=$1
    shift
    take "$name" kubectl --kubeconfig "$conf" --request-timeout=10s "$@"
  }
  ask cluster-version version
  ask cluster-nodes get nodes -o wide
  ask cluster-nodes-described describe nodes
  ask cluster-pods get pods --all-namespaces -o wide
  ask cluster-events get events --all-namespaces
  ask cluster-workloads get daemonsets,deployments,jobs --all-namespaces -o wide
  ask cluster-kubeadm -n kube-system get configmap kubeadm-config -o yaml
  ask cluster-device-plugin -n kube-system logs -l app.kubernetes.io/name=nvidia-device-plugin --tail=500
  ask cluster-notebook -n kgpu-notebook describe pods
fi
echo end=1
