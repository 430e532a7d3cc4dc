# shellcheck shell=bash
# Leaving a cluster: kubeadm reset, and what it leaves behind of Kubernetes and of the pod networks that kgpu applies.

# was_plane tells whether kgpu made this host a control plane, or began to.
was_plane() {
  local what
  for what in init init-done join-plane join-plane-done; do
    if ledger_has kubeadm "$what"; then return 0; fi
  done
  return 1
}

# leave_cluster CRI_SOCKET [gone] makes this host a member of nothing. It can be repeated. Where the whole cluster goes, etcd need not
# agree to that.
leave_cluster() {
  local calico=no
  local -a flags=(-f --cri-socket "$1")
  if calico_here; then calico=yes; fi
  if kubernetes_before 9; then flags=(); elif kubernetes_before 11; then flags=("${flags[@]:1}"); fi
  if [[ ${2-} == gone ]] && was_plane && ! kubernetes_before 30; then flags+=(--skip-phases=remove-etcd-member); fi
  pod_network_mute
  if [[ ${2-} != gone ]] && was_plane; then etcd_leave; fi
  if command -v kubeadm >/dev/null; then
    run_kubeadm timeout -k 10 180 kubeadm reset "${flags[@]}" || echo 'kubeadm reset failed: cleaning up without it'
  fi
  kubelet_off
  containers_off
  docker_containers_off
  mps_off
  pod_network_off "$calico"
  # On a worker, the data of an etcd is somebody else's.
  if was_plane; then rm -rf /var/lib/etcd/member; fi
  rm -rf /etc/kubernetes/pki /etc/kubernetes/manifests/*.yaml /etc/kubernetes/*.conf
  images_stay "$1"
  ledger_forget kubeadm
}

# images_stay CRI_SOCKET says so where it is not known which ones came for the cluster: docker has one list, with its owner's, and keeps
# it in containerd or by itself; an older kgpu recorded none.
images_stay() {
  if [[ $1 == *containerd.sock ]]; then
    ledger_has tree /var/lib/containerd || ledger_has images || undo_left 'the images that the cluster pulled: ctr -n k8s.io images list'
  elif ! ledger_has tree /var/lib/docker; then
    undo_left 'the images that the cluster pulled, among those of your docker: docker image list'
  elif ! ledger_has tree /var/lib/containerd && [[ -n $(timeout 20 ctr -n moby images list -q 2>/dev/null) ]]; then
    undo_left 'the images that the cluster pulled, in your containerd: ctr -n moby images list'
  fi
}

# pod_network_mute lets containers be removed without the pod network's own agent, which goes with the first of them:
# the runtime then calls only the loopback plugin.
pod_network_mute() {
  local file
  [[ -d /etc/cni/net.d ]] || return 0
  for file in /etc/cni/net.d/*; do
    if pod_network_file "$file"; then rm -f "$file"; fi
  done
  [[ -d /etc/kubernetes ]] || return 0
  record_once cni-mute
  printf '%s\n' '{"cniVersion":"0.3.1","name":"kgpu-leave","plugins":[{"type":"loopback"}]}' >/etc/cni/net.d/00-kgpu-leave.conflist
}

# pod_network_file PATH tells whether a file of /etc/cni/net.d is of a pod network that kgpu applies.
pod_network_file() {
  case ${1##*/} in
    10-weave.conflist | 10-flannel.conflist | 10-calico.conflist | calico-kubeconfig | 10-kgpu* | 00-kgpu*) return 0 ;;
    *) return 1 ;;
  esac
}

# others_have_networks tells whether containers run, podman's say, whose networks CNI's plugins made: those of the cluster
# have ended.
others_have_networks() {
  local space
  for space in /run/netns/cni-*; do
    if [[ -e $space && -n $(ip netns pids "${space##*/}" 2>/dev/null) ]]; then return 0; fi
  done
  return 1
}

kubelet_off() {
  local target
  systemctl stop kubelet.service 2>/dev/null || true
  systemctl reset-failed kubelet.service 2>/dev/null || true
  unmount_below /var/lib/kubelet inside # a file system of its own there is its owner's, and in fstab
  [[ ! -d /var/lib/kubelet ]] || find /var/lib/kubelet -xdev -mindepth 1 -delete
  for target in kubepods.slice kubelet.slice; do systemctl stop "$target" 2>/dev/null || true; done
  # Those of version 1 that systemd does not manage stay behind, empty.
  find /sys/fs/cgroup -depth -type d \( -path '*/kubepods.slice' -o -path '*/kubepods.slice/*' \) -exec rmdir {} + 2>/dev/null || true
}

# containers_off ends containers that the runtime could not remove, and their network namespaces.
containers_off() {
  local id space
  if command -v ctr >/dev/null && [[ -S /run/containerd/containerd.sock ]]; then
    for id in $(timeout 20 ctr -n k8s.io tasks list -q 2>/dev/null); do
      echo "ending the container $id, which kubeadm reset left"
      timeout 20 ctr -n k8s.io tasks delete -f "$id" >/dev/null 2>&1 || true
    done
    for id in $(timeout 20 ctr -n k8s.io containers list -q 2>/dev/null); do
      timeout 20 ctr -n k8s.io containers delete "$id" >/dev/null 2>&1 || true
    done
  fi
  for space in /run/netns/cni-*; do
    [[ -e $space ]] || continue
    [[ -z $(ip netns pids "${space##*/}" 2>/dev/null) ]] || continue # somebody else's container
    umount "$space" 2>/dev/null || true
    rm -f "$space"
  done
}

# docker_pods prints the containers of the cluster's in docker: dockershim and cri-dockerd label them so.
docker_pods() {
  timeout -k 5 20 docker ps -aq --filter label=io.kubernetes.pod.uid
}

# docker_containers_off ends those that kubeadm reset left. Asking a docker that does not run would start it.
docker_containers_off() {
  local there
  local -a ids
  if ! command -v docker >/dev/null || ! unit_active docker.service; then return 0; fi
  if there=$(docker_pods) && [[ -n $there ]]; then
    mapfile -t ids <<<"$there"
    echo "ending the containers ${ids[*]}, which kubeadm reset left"
    timeout -k 5 60 docker rm -fv "${ids[@]}" >/dev/null || true
  fi
  if ! there=$(docker_pods); then
    undo_left 'containers of the cluster, perhaps: docker does not say: docker ps -a --filter label=io.kubernetes.pod.uid'
  elif [[ -n $there ]]; then
    undo_left "containers of the cluster in docker: docker rm -f ${there//$'\n'/ }"
  fi
}

# mps_off lets any process have a card again: MPS, where its control daemon could not say goodbye, left them to itself.
mps_off() {
  local started
  for started in /run/nvidia/mps/nvidia.com/*/.started; do
    [[ -e $started ]] || continue
    nvidia_smi_try -c DEFAULT
    cat "$smi_log"
    [[ $smi_status == 0 ]] || echo 'the cards stay in the compute mode EXCLUSIVE_PROCESS until the driver is loaded anew'
    return 0
  done
}

# calico_here tells whether calico is, or was, this host's pod network.
calico_here() {
  local trace
  for trace in /sys/class/net/{cali*,vxlan.calico} /var/lib/calico /etc/cni/net.d/{10-calico.conflist,calico-kubeconfig}; do
    if [[ -e $trace ]]; then return 0; fi
  done
  return 1
}

# pod_network_off [CALICO] removes what pod networks leave. CALICO is yes where calico was found before its files went.
pod_network_off() {
  local link file set agent=no calico=${1:-no}
  if calico_here; then calico=yes; fi
  rm -f /etc/cni/net.d/00-kgpu-leave.conflist
  ledger_forget cni-mute
  for link in /sys/class/net/*; do
    case ${link##*/} in
      weave | vethwe-* | vethwepl* | datapath | vxlan-6784 | cni0 | flannel.[0-9]* | flannel-v6.[0-9]* | cali* | vxlan.calico | \
        vxlan-v6.calico | wireguard.cali | wg-v6.cali | kube-ipvs0)
        ip link delete "${link##*/}" 2>/dev/null || true
        [[ ${link##*/} != @(weave|cali*|vxlan.calico|kube-ipvs0) ]] || agent=yes
        ;;
    esac
  done
  if [[ $calico == yes ]]; then calico_off; fi
  if ! others_have_networks; then
    rules_drop "$kubernetes_chains" "$kubernetes_rules"
    rm -rf /var/lib/cni/networks /var/lib/cni/cache /var/lib/cni/results
  else
    # The plugins name their chains alike for everybody.
    rules_drop "${kubernetes_chains/|CNI/}" "$kubernetes_rules"
    rm -rf /var/lib/cni/networks/{cbr0,weave,k8s-pod-network} /var/lib/cni/{results,cache/results}/{cbr0,weave,k8s-pod-network,kgpu-leave,cni-loopback}-*
    undo_left "the packet filter chains CNI-*: containers that are not the cluster's have theirs among them"
  fi
  if command -v nft >/dev/null; then
    nft list tables 2>/dev/null | grep -E '^table (ip|ip6|inet) (kube-proxy|flannel-ipv[46]|calico)$' |
      while read -r _ family set; do nft delete table "$family" "$set"; done || true
  fi
  sets_drop "$agent"
  for file in /etc/cni/net.d/*; do
    if pod_network_file "$file"; then rm -f "$file"; fi
  done
  rm -rf /run/flannel /var/lib/cni/flannel /var/lib/weave /run/calico /var/lib/calico /var/log/calico \
    /opt/cni/bin/{weave-net,weave-ipam,flannel,calico,calico-ipam} /opt/cni/bin/weave-plugin-*
}

# calico_off removes calico's routes and addresses from where others may have theirs: BIRD's routes, the tunnel of LVS.
calico_off() {
  if [[ -e /sys/class/net/tunl0 ]]; then ip address flush dev tunl0 && ip link set tunl0 down; fi
  ip route flush proto 80 2>/dev/null || true
  ip route flush proto bird 2>/dev/null || true
}

# sets_drop AGENT destroys the ipsets of pod networks. Agents make them from their containers, with the kernel's help only: AGENT
# is yes where one did that was there until now, and a host without the program cannot even list them.
sets_drop() {
  local set
  if ! command -v ipset >/dev/null; then
    [[ $1 != yes ]] || undo_left 'the ipsets of the pod network, which this host has no program for: they stay until the next boot' until-boot
    return
  fi
  local -a sets
  mapfile -t sets < <(ipset list -n 2>/dev/null | grep -E '^(weaver-no-masq-local|weave-.*|KUBE-.*|cali[46].*)$')
  for set in "${sets[@]}"; do ipset destroy "$set" 2>/dev/null || true; done
  for set in "${sets[@]}"; do # one that a set named which was destroyed after it
    if ipset list -n "$set" >/dev/null 2>&1; then ipset destroy "$set" 2>/dev/null || undo_left "the ipset $set is in use: it stays until the next boot" until-boot; fi
  done
}

# unmount_below PATH [inside] unmounts everything under PATH, deepest first, and PATH itself unless only what is inside of
# it is meant.
unmount_below() {
  local mount
  while read -r mount; do
    umount -- "$mount" 2>/dev/null || umount -l -- "$mount" || true
  done < <(while read -r _ _ _ _ mount _; do
    printf -v mount '%b' "$mount"
    if [[ $mount == "$1"/* || ($mount == "$1" && ${2:-} != inside) ]]; then printf '%s\n' "$mount"; fi
  done </proc/self/mountinfo | sort -r)
}
