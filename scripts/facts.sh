# shellcheck shell=bash
# Prints what this host is, as key=value lines between kgpu-facts=1 and end=1. It is read by `bash -s` as root, writes
# nothing, starts few programs and none without a time limit. It only collects: bootstrap/facts understands.
set -u
echo kgpu-facts=1
echo "now=${EPOCHREALTIME:-$(date +%s.%N)}"

# told KEY COMMAND... prints a line KEY=… for each line of the command's output, and returns its status.
told() {
  local key=$1 line
  shift
  while IFS= read -r line; do
    [[ -z $line ]] || printf '%s=%s\n' "$key" "$line"
  done < <(timeout 30 "$@" 2>/dev/null)
  wait $! 2>/dev/null
}

# in_time STATUS PROGRAM ends the script where a program had to be ended. One that waits for a disk has not said that there
# are no packages, or no addresses: better no facts than wrong ones.
in_time() {
  [[ $1 == 124 || $1 == 137 ]] || return 0
  echo "$2 did not answer in time" >&2
  exit 1
}

# each KEY COMMAND... prints what has to be known.
each() {
  told "$@" || in_time $? "$2"
}

# each_of KEY FILE does so for the lines of a file.
each_of() {
  local line
  [[ -r $2 ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    [[ -z $line ]] || printf '%s=%s\n' "$1" "$line"
  done 2>/dev/null <"$2"
}

# blob KEY FILE prints a file in base64, if there is one.
blob() {
  [[ ! -f $2 ]] || printf '%s=%s\n' "$1" "$(base64 -w 0 "$2")"
}

# --- the machine
printf 'hostname=%s\n' "$HOSTNAME"
each_of machine-id /etc/machine-id
each_of product-uuid /sys/class/dmi/id/product_uuid
each_of boot-id /proc/sys/kernel/random/boot_id
each_of os-release /etc/os-release
each_of kernel /proc/sys/kernel/osrelease
each virt systemd-detect-virt
each cpus nproc
[[ ! -d /run/systemd/system ]] || echo systemd=1
[[ ! -f /sys/fs/cgroup/cgroup.controllers ]] || echo cgroup2=1
[[ $(iptables --version 2>/dev/null) != *'(legacy)'* ]] || echo iptables-legacy=1
while read -r key value _; do
  if [[ $key == MemTotal: ]]; then
    echo "memory-kib=$value"
    break
  fi
done </proc/meminfo

# --- network
each address ip -o address show
each link ip -o link show
each route ip -4 -o route show table main
each route ip -6 -o route show table main
each listen ss -Hltnp
# The name servers by the files that may have them. The first is the one that programs read, if it is there.
for path in /etc/resolv.conf /run/systemd/resolve/resolv.conf /run/NetworkManager/no-stub-resolv.conf /run/dnsmasq/resolv.conf; do
  [[ -r $path || $path == /etc/* ]] || continue
  servers=
  while read -r key value _ || [[ -n $key ]]; do
    [[ $key != nameserver ]] || servers+=" $value"
  done 2>/dev/null <"$path"
  printf 'resolv-conf=%s%s\n' "$path" "$servers"
done

# --- disks and swap
while read -r _ mountpoint _ options _; do
  [[ ,$options, != *,noexec,* ]] || printf 'noexec=%s\n' "$mountpoint"
done </proc/self/mounts
each_of swap-active /proc/swaps
while read -r device _ type options _; do
  [[ $device == \#* || $type != swap || ,$options, == *,noauto,* ]] || echo "swap-fstab=$device"
done 2>/dev/null </etc/fstab

# --- the kernel
modules='overlay|br_netfilter|bridge|veth|vxlan|dummy|openvswitch|nf_conntrack|nf_tables|ip_tables|ip_set|xt_set|ipip'
while read -r module _; do
  [[ "|$modules|" != *"|$module|"* ]] || echo "module-loaded=$module"
done 2>/dev/null </proc/modules
read -r release </proc/sys/kernel/osrelease
for module in ${modules//|/ }; do
  [[ ! -d /sys/module/$module ]] || echo "module-loaded=$module"
done
[[ ! -d /proc/sys/net/bridge ]] || echo module-loaded=br_netfilter
for image in /boot/vmlinuz-*; do
  [[ ! -d /lib/modules/${image#/boot/vmlinuz-} ]] || printf 'kernel-installed=%s\n' "${image#/boot/vmlinuz-}"
done
[[ ! -e /lib/modules/$release/build/Makefile ]] || echo kernel-headers=1
each module-file grep -sHoE "/(${modules//_/[-_]})\.ko" "/lib/modules/$release/modules.builtin" "/lib/modules/$release/modules.dep"
# What of modprobe's configuration may keep modules out: of files with the same name it reads the first.
configured=()
seen=' '
for file in /{etc,run,usr/local/lib,usr/lib,lib}/modprobe.d/*.conf; do
  [[ -e $file && $seen != *" ${file##*/} "* ]] || continue
  seen+="${file##*/} "
  configured+=("$file")
done
each module-off grep -sHnE "^[[:blank:]]*(install|blacklist|alias)[[:blank:]]+(${modules//_/[-_]}|nvidia([-_]uvm)?)([[:blank:]]|$)" /dev/null "${configured[@]}"
[[ $(</proc/cmdline) != *blacklist=* ]] || each module-off grep -HnoE '\bmod(ule_|probe\.)blacklist=[^ ]+' /proc/cmdline
for key in net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.bridge.bridge-nf-call-iptables \
  net.bridge.bridge-nf-call-ip6tables fs.inotify.max_user_instances fs.inotify.max_user_watches vm.max_map_count; do
  each_of "sysctl=$key" "/proc/sys/${key//.//}"
done

# --- NVIDIA's cards, their driver
# fabric prints for each card how far it has come with its NVLink fabric.
fabric() {
  local line card='' part='' state=''
  while IFS= read -r line; do
    if [[ $line == GPU\ * ]]; then
      card=${line#GPU } part=
    elif [[ $line =~ ^\ +Fabric$ ]]; then
      part=yes
    elif [[ -n $part && $line =~ ^\ +State\ *:\ (.*)$ ]]; then
      state=${BASH_REMATCH[1]}
    elif [[ -n $part && $line =~ ^\ +Status\ *:\ (.*)$ ]]; then
      printf 'fabric=%s\t%s\t%s\n' "$card" "$state" "${BASH_REMATCH[1]}"
      part=
    fi
  done < <(timeout -k 2 28 cat < <(exec 2>/dev/null </dev/null && timeout -k 5 20 nvidia-smi -q))
}
cards='' fabric='' bridges=()
for device in /sys/bus/pci/devices/*; do
  vendor=
  read -r vendor 2>/dev/null <"$device/vendor"
  [[ $vendor != 0x15b3 || -e $device/physfn || ! -r $device/vpd ]] || bridges+=("$device")
  [[ $vendor == 0x10de ]] || continue
  read -r class <"$device/class"
  [[ $class == 0x03* || $class == 0x0680* ]] || continue
  read -r id <"$device/device"
  driver=-
  [[ ! -e $device/driver ]] || driver=$(readlink "$device/driver")
  printf 'pci=%s %s %s %s\n' "${device##*/}" "${class#0x}" "${id#0x}" "${driver##*/}"
  cards=yes
  # NVSwitches, and the chips of which there are NVLink 5 systems: GB100 and GB110.
  [[ $class != 0x0680* && $id != 0x29* && $id != 0x31* ]] || fabric=yes
done
# NVLink 5 switches are no functions of the bus: they are managed through functions of ConnectX whose vital product data says so.
# Source: NVIDIA/gpu-driver-container, _assert_nvlink5_system.
[[ -n $fabric ]] || bridges=()
for device in "${bridges[@]}"; do
  driver=$(readlink "$device/driver") # none: it has no driver
  [[ ${driver##*/} != vfio-pci ]] || continue
  timeout 20 grep -qa SW_MNG "$device/vpd" 2>/dev/null
  status=$?
  in_time "$status" 'the vital product data of ConnectX'
  [[ $status != 0 ]] || printf 'nvlink-bridge=%s\n' "${device##*/}"
done
# A variable of the firmware: four bytes of attributes, then its value.
variable=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
if [[ -r $variable && $(od -An -t u1 -j 4 -N 1 "$variable" 2>/dev/null) == *1* ]]; then echo secure-boot=1; fi
if [[ -n $cards ]]; then
  each_of nouveau /sys/module/nouveau/refcnt
  each_of nvidia-loaded /sys/module/nvidia/version
  each nvidia-module modinfo -F version nvidia
  # By its links, as in lib/nvidia.sh: they may lead to a folder of the driver's own.
  for library in /usr/lib/{x86_64,aarch64}-linux-gnu/libnvidia-ml.so.1 /usr/lib{,64}/libnvidia-ml.so.1; do
    if [[ -e $library ]] && path=$(readlink -e "$library"); then printf 'nvidia-library=%s\n' "${path##*.so.}"; fi
  done
  [[ ! -e /usr/bin/nvidia-uninstall ]] || echo nvidia-runfile=1
  # What a container needs of the driver, by the names that programs look for; of a name the linker takes the first path.
  names=' '
  while read -r name path; do
    [[ $names != *" $name "* ]] || continue
    names+="$name "
    path=$(readlink -e "$path") && printf 'nvidia-file=%s %s\n' "$name" "$path"
  done < <(
    timeout 30 ldconfig -p 2>/dev/null | sed -nE \
      's/^[[:blank:]]*(lib(cuda|cudadebugger|nvidia-(ml|cfg|opencl|gpucomp|ptxjitcompiler|fatbinaryloader|allocator|compiler|nvvm))\.so\.[0-9.]+) \(libc6,(x86-64|AArch64).* => (.*)$/\1 \5/p'
    status=${PIPESTATUS[0]}
    if path=$(command -v nvidia-smi); then printf 'nvidia-smi %s\n' "$path"; fi
    exit "$status"
  )
  wait $! 2>/dev/null || in_time $? ldconfig
  # A sick driver hangs whoever asks it.
  if [[ -e /sys/module/nvidia/version ]]; then
    fields=uuid,name,pci.bus_id,memory.total
    read -r version </sys/module/nvidia/version
    [[ ${version%%.*} -lt 450 ]] || fields+=,mig.mode.current # drivers before that do not know the word
    # One that is stuck in the kernel cannot be ended, nor can who waits for it: only what reads from it is waited for.
    listed=$(timeout -k 2 28 cat < <(
      exec 2>/dev/null </dev/null
      timeout -k 5 20 nvidia-smi --query-gpu="$fields" --format=csv,noheader
      echo "status $?"
    ))
    status=124
    [[ $listed != *'status '* ]] || status=${listed##*status }
    listed=${listed%status *}
    if [[ $status == 0 || $status == 14 ]]; then # 14 is a warning of a corrupted infoROM (nvidia-smi(1)), beside a whole list
      while IFS= read -r line; do
        [[ $line != GPU-* ]] || printf 'gpu=%s\n' "$line" # it says more on its standard output than what it is asked for
      done <<<"$listed"
      [[ $listed != *', Enabled'* ]] || told mig timeout -k 5 8 nvidia-smi -L
      [[ -z $fabric ]] || fabric
    else
      printf 'nvidia-smi=%s\n' "$status"
    fi
  fi
  each_of gpu-feature /etc/kubernetes/node-feature-discovery/features.d/gfd
fi

# --- packages
# Who holds a lock of apt or dpkg; the lock itself is not touched.
locks=(/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock)
inodes=$(stat -c ' %i ' "${locks[@]}" 2>/dev/null)
while read -r _ arrow _ _ pid where _; do
  [[ $arrow != '->' && $inodes == *" ${where##*:} "* ]] || continue
  for lock in "${locks[@]}"; do
    for fd in "/proc/$pid"/fd/*; do
      if [[ $fd -ef $lock ]]; then
        name=
        read -r name 2>/dev/null <"/proc/$pid/comm"
        printf 'apt-lock=%s %s\n' "$pid" "$name"
        break 3
      fi
    done
  done
done </proc/locks
each arch dpkg --print-architecture
wanted='apparmor apt-transport-https ca-certificates chrony conntrack containerd containerd.io containernetworking-plugins
cri-o cri-tools curl docker-ce docker-ce-cli docker.io docker-cli docker-engine docker-buildx-plugin docker-compose-plugin ebtables ethtool
gnupg gpg ipset iptables iproute2 keepalived kmod kubeadm kubectl kubelet kubernetes-cni libseccomp2 moby-containerd moby-engine moby-runc
nftables ntp ntpsec openntpd podman podman-docker procps runc socat systemd-timesyncd tar ufw util-linux'
# shellcheck disable=SC2016 # the fields are dpkg's and awk's
told package awk -v wanted="${wanted//$'\n'/ }" -v release="-$release" '
  NF == 2 && $1 == "dpkg-query" { exit $2 }
  BEGIN { n = split(wanted, names, " "); for (i = 1; i <= n; i++) want[names[i]] = 1 }
  ($1 in want) || index($1, release) || $1 ~ /nvidia|^linux-headers-|^cuda-(drivers|keyring|toolkit-[0-9]+-[0-9]+$)|^cudnn9-cuda-[0-9]+$|^libcuda1$/ || ($3 != "installed" && $3 != "config-files" && $3 != "not-installed") || $2 == "hold" || $4 != "ok"
' < <(
  timeout 30 dpkg-query -W -f '${Package} ${db:Status-Want} ${db:Status-Status} ${db:Status-Eflag} ${Version} ${Architecture}\n' 2>/dev/null
  echo "dpkg-query $?"
) || in_time $? dpkg-query
boot=
{ read -r boot </var/lib/kgpu/unsettled; } 2>/dev/null || true
[[ -z $boot || $boot == "$(</proc/sys/kernel/random/boot_id)" ]] || echo unsettled=1
[[ ! -e /run/reboot-required ]] || echo reboot-required=1
each_of ufw /etc/ufw/ufw.conf

# --- units, and runs of kgpu that go on
units=(containerd.service docker.service docker.socket cri-docker.service cri-docker.socket kubelet.service chrony.service
  systemd-resolved.service systemd-timesyncd.service ntp.service ntpsec.service openntpd.service ufw.service firewalld.service nftables.service
  unattended-upgrades.service nvidia-persistenced.service nvidia-fabricmanager.service nvidia-imex.service keepalived.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service
  kgpu-api-name.service kgpu-backup.timer k0scontroller.service k0sworker.service snap.microk8s.daemon-kubelite.service snap.docker.dockerd.service)
for batch in /var/lib/kgpu/run/*/; do
  [[ -d $batch && ! -e $batch/result ]] || continue
  batch=${batch%/}
  units+=("kgpu-${batch##*/}.service")
done
# Swap units by their files: to list them, systemd would read all unit files, which takes it longer than all of the rest.
for file in {/etc,/run,/usr/local/lib,/usr/lib,/lib}/systemd/system/*.swap /run/systemd/generator{,.early,.late}/*.swap; do
  [[ ! -e $file && ! -L $file ]] || units+=("${file##*/}")
done
shown=$(timeout 20 systemctl show -p Id -p LoadState -p ActiveState -p UnitFileState -- "${units[@]}" 2>/dev/null) || in_time $? systemd
active=' '
while IFS='=' read -r key value; do
  case $key in
    Id) id=$value load='' state='' file='' ;;
    LoadState) load=$value ;;
    ActiveState) state=$value ;;
    UnitFileState)
      file=$value
      if [[ $id == *.swap ]]; then
        printf 'swap-unit=%s %s\n' "$id" "$file"
      elif [[ $load != not-found ]]; then
        printf 'unit=%s %s %s\n' "$id" "$state" "$file"
      fi
      [[ $state != active && $state != activating ]] || active+="$id "
      ;;
  esac
done <<<"$shown"
for id in $active; do
  [[ $id == kgpu-*.service ]] || continue
  batch=${id#kgpu-}
  batch=/var/lib/kgpu/run/${batch%.service}
  first=
  last=
  while IFS=$'\t' read -r kind step since _; do
    if [[ $kind == B ]]; then
      first=${first:-$since}
      last=$step
    fi
  done <"$batch/events"
  by=
  read -r by 2>/dev/null <"$batch/by"
  printf 'run=%s\nrun-step=%s\nrun-since-ms=%s\nrun-by=%s\n' "${batch##*/}" "$last" "$first" "$by"
done

# --- what kgpu recorded
recorded=()
count=0
for entry in /var/lib/kgpu/ledger/[0-9]*/; do
  [[ -d $entry ]] || continue
  count=$((count + 1))
  read -r kind <"$entry/kind"
  if [[ $kind == file ]]; then
    read -r path <"$entry/args"
    [[ ! -f $path ]] || recorded+=("$path")
  elif [[ $kind == kubeadm || $kind == adopted ]]; then
    mapfile -t words <"$entry/args"
    printf '%s=%s\n' "$kind" "${words[*]}"
    blob recorded-ca "$entry/before/ca.crt"
  fi
done
# A step that was cut off between new settings and the restart that has them read.
for file in /var/lib/kgpu/outdated/*; do
  [[ ! -f $file || $(timeout 20 systemctl show --value -p InvocationID -- "${file##*/}" 2>/dev/null) != "$(<"$file")" ]] || echo "outdated=${file##*/}"
done
# A reset that was cut off after the last entry has not told what it left, nor forgotten all. One that does so now has the lock.
if [[ -d /var/lib/kgpu/left ]]; then
  lock=$(stat -c %i /var/lib/kgpu/lock 2>/dev/null || echo none)
  grep -q ":$lock " /proc/locks || count=$((count + 1))
fi
echo "ledger=$count"
# What kgpu keeps for itself: of steps that ended before their first change there is no more than that.
for file in /var/lib/kgpu/*; do
  [[ ! -e $file || ${file##*/} == @(operator|lock|left|fence) ]] || { echo notes=1 && break; }
done
each_of fence /var/lib/kgpu/fence
# A restore that was begun and has not ended, by the sum of its archive; where there is the data, with the token and the members of its etcd,
# or none of these where it is made anew.
if [[ -s /var/lib/kgpu/restore/archive ]]; then
  read -r sum </var/lib/kgpu/restore/archive
  state=begun
  [[ ! -e /var/lib/kgpu/restore/restored ]] || state="restored $(head -n 1 /var/lib/kgpu/restore/restored)"
  printf 'restore=%s %s\n' "$sum" "$state"
fi
# The backups that this host makes by itself: since when, the last good one, and why the last try was none.
if [[ -d /var/lib/kgpu/scheduled ]]; then
  each_of backup-since /var/lib/kgpu/scheduled/since
  each_of backup-good /var/lib/kgpu/scheduled/good
  each_of backup-failed /var/lib/kgpu/scheduled/failed
  IFS=$'\t' read -r _ archive 2>/dev/null </var/lib/kgpu/scheduled/good && ! timeout 3 test -e "$archive" && echo backup-gone=1
  [[ $(timeout 5 systemctl is-failed kgpu-backup.service 2>/dev/null) != failed ]] || echo backup-unit-failed=1
fi
[[ ! -e /var/lib/kgpu/unproven ]] || echo unproven=1
each_of upgrading /var/lib/kgpu/upgrading
[[ ! -e /var/lib/kgpu/network-unproven ]] || echo network-unproven=1
[[ ! -s /etc/keepalived/keepalived.conf || " ${recorded[*]} " == *' /etc/keepalived/keepalived.conf '* ]] || echo other-keepalived=1
[[ ! -f /etc/kubernetes/admin.conf ]] || recorded+=(/etc/kubernetes/admin.conf)
[[ ${#recorded[@]} -eq 0 ]] || each file sha256sum -- "${recorded[@]}"
# When apt last took what a key of its repositories signed, and when the key ends. gpg may be gone; here it needs no home and
# writes nothing.
keyrings=' '
for path in "${recorded[@]}"; do # a file that changed twice is there twice
  [[ $path == /etc/apt/keyrings/kgpu-*.gpg && $keyrings != *" $path "* ]] || continue
  keyrings+="$path "
  told keyring stat -c '%Y %n' -- "$path"
  told "keyring-key=$path" gpg --batch --no-options --no-autostart --homedir /proc --lock-never --trust-model always --no-auto-check-trustdb \
    --no-default-keyring --keyring "$path" --with-colons --list-keys
done

# --- container runtimes
blob daemon-json /etc/docker/daemon.json
blob containerd-toml /etc/containerd/config.toml
# Where their images go: what they say themselves while they run, else what their files say.
docker_root=/var/lib/docker containerd_root=/var/lib/containerd
if [[ -r /etc/docker/daemon.json && $(</etc/docker/daemon.json) =~ \"(data-root|graph)\"[[:space:]]*:[[:space:]]*\"(/[^\"]*)\" ]]; then
  docker_root=${BASH_REMATCH[2]}
fi
# root_of CONFIGURATION takes containerd's root from the keys before the first table.
root_of() {
  local line
  while IFS= read -r line && [[ $line != \[* ]]; do
    if [[ $line =~ ^[[:space:]]*root[[:space:]]*=[[:space:]]*[\"\'](/[^\"\']*) ]]; then containerd_root=${BASH_REMATCH[1]}; fi
  done <<<"$1"
}
if [[ -r /etc/containerd/config.toml ]]; then root_of "$(</etc/containerd/config.toml)"; fi
if [[ $active == *' containerd.service '* ]]; then
  dump=$(set -o pipefail && timeout 30 containerd config dump 2>/dev/null | base64 -w 0) || in_time $? containerd
  printf 'containerd-dump=%s\n' "$dump"
  root_of "$(base64 -d <<<"$dump" 2>/dev/null)"
fi
if [[ $active == *' docker.service '* ]]; then
  ask=(curl -fsS --unix-socket /run/docker.sock http://localhost/info)
  # One that is slow is asked again: nothing else tells its cgroup driver, and where its images go.
  docker=$(timeout 10 "${ask[@]}" 2>/dev/null) || { [[ $? == 124 ]] && docker=$(timeout 30 "${ask[@]}" 2>/dev/null); }
  [[ $docker != *'"nvidia":{'* ]] || echo 'docker-info=nvidia yes'
  if [[ $docker =~ \"DockerRootDir\":\"(/[^\"]*)\" ]]; then docker_root=${BASH_REMATCH[1]}; fi
  for field in ServerVersion CgroupDriver CgroupVersion Driver; do
    [[ ! $docker =~ \"$field\":\"([^\"]*)\" ]] || printf 'docker-info=%s %s\n' "$field" "${BASH_REMATCH[1]}"
  done
fi
printf 'docker-root=%s\ncontainerd-root=%s\n' "$docker_root" "$containerd_root"
# The file systems on which the kubelet looks for room: of what is not there yet, the one where it would be made.
paths=()
for path in / /var /var/lib /var/cache/apt /boot /tmp /var/lib/kubelet "$docker_root" "$containerd_root"; do
  while [[ ! -d $path ]]; do
    path=${path%/*}
    path=${path:-/}
  done
  paths+=("$path")
done
each file-system df --output=avail,size,iavail,itotal,target,file -k -- "${paths[@]}"
toolkit=/etc/nvidia-container-runtime/config.toml
[[ ! -f $toolkit ]] || each toolkit-setting grep -E '^[[:blank:]]*accept-nvidia-visible-devices-' "$toolkit"
if [[ -x /usr/local/bin/cri-dockerd ]]; then
  version=$(timeout 30 /usr/local/bin/cri-dockerd --version 2>&1) || in_time $? cri-dockerd
  printf 'cri-dockerd=%s\n' "$version"
fi

# What is run instead of what packages bring: containerd and docker look for their helpers in /usr/local first, and systemd takes
# the owner's unit.
for path in /usr/local/{sbin,bin}/{containerd-shim-runc-v2,runc,docker-init,docker-proxy,nvidia-container-runtime-hook,nvidia-container-cli}; do
  [[ ! -x $path ]] || printf 'shadow=%s\n' "$path"
done
for path in {/etc,/usr/local/lib}/systemd/system/{containerd,docker,kubelet}.service; do
  [[ ! -e $path ]] || grep -qsE '^ExecStart=[-@:+!]*/usr/s?bin/' "$path" || printf 'shadow=%s\n' "$path"
done

# --- clusters
for path in /usr/{local/,}bin/{k3s,rke2,k0s}{,-uninstall.sh,-agent-uninstall.sh} /opt/rke2/bin/rke2{,-uninstall.sh} /snap/microk8s \
  /{var/lib,etc}/rancher/{k3s,rke2} /var/lib/k0s /etc/k0s /var/snap/microk8s /var/lib/minikube /opt/rke /var/lib/origin; do
  [[ ! -e $path ]] || echo "foreign=$path"
done
# What kubeadm puts there; what etcd keeps; what pod networks leave.
for path in /etc/kubernetes/{admin.conf,kubelet.conf,bootstrap-kubelet.conf,pki/ca.crt,manifests/kube-apiserver.yaml,manifests/etcd.yaml}; do
  [[ ! -e $path ]] || echo "kubeadm-file=$path"
done
for path in /var/lib/etcd/member/*; do
  [[ -e $path ]] || continue
  size=$(timeout 10 du -sk /var/lib/etcd/member 2>/dev/null)
  printf 'etcd-data=%s %s\n' "${size%%[!0-9]*}" "$(stat -c %Y /var/lib/etcd/member/wal 2>/dev/null || stat -c %Y /var/lib/etcd/member)"
  break
done
for path in /etc/cni/net.d/*.{conf,conflist,json} /run/flannel/subnet.env; do
  [[ ! -e $path ]] || echo "pod-network=$path"
done

# member FILE prints the cluster and the certificate, never the key, in a kubeconfig.
member() {
  local key value
  while read -r key value _; do
    case $key in
      server:) printf 'kubelet-server=%s\n' "$value" ;;
      certificate-authority-data:) printf 'kubelet-ca=%s\n' "$value" ;;
      certificate-authority:) blob kubelet-ca "$value" ;;
      client-certificate-data:) printf 'kubelet-certificate=%s\n' "$value" ;;
      client-certificate:) certificate kubelet-certificate-der= "$value" ;;
    esac
  done <"$1"
}

# certificate PREFIX FILE prints the first certificate of a PEM file that may hold keys too, as base64 of its DER.
certificate() {
  local line der='' inside=
  [[ -r $2 ]] || return 0
  while IFS= read -r line; do
    case $line in
      '-----BEGIN CERTIFICATE-----') inside=yes ;;
      '-----END CERTIFICATE-----') break ;;
      *) [[ -z $inside ]] || der+=$line ;;
    esac
  done <"$2"
  printf '%s%s\n' "$1" "${der:0:20000}"
}

# within FILE prints the client's certificate in a kubeconfig, as base64 of PEM, if it is not in a file of its own.
within() {
  local key value
  while read -r key value _; do
    if [[ $key == client-certificate-data: ]]; then
      printf 'certificate-within=%s %s\n' "$1" "${value:0:20000}"
      break
    fi
  done <"$1"
}

if [[ -f /etc/kubernetes/kubelet.conf ]]; then member /etc/kubernetes/kubelet.conf; fi
# The certificates of Kubernetes on this host, never their keys. The kubelet renews what is in its own directory; a kubeconfig may
# still have the one that it began with.
for path in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt /var/lib/kubelet/pki/kubelet{,-server-current}.{crt,pem}; do
  [[ ! -f $path ]] || certificate "certificate=$path " "$path"
done
for path in /etc/kubernetes/{admin,super-admin,controller-manager,scheduler}.conf; do
  [[ ! -f $path ]] || within "$path"
done
rotated=/var/lib/kubelet/pki/kubelet-client-current.pem
first=/var/lib/kubelet/pki/kubelet-client.crt
if [[ -f $rotated ]]; then
  certificate "certificate=$rotated " "$rotated"
elif [[ -f $first ]]; then
  certificate "certificate=$first " "$first"
elif [[ -f /etc/kubernetes/kubelet.conf ]]; then
  within /etc/kubernetes/kubelet.conf
fi
# A renewal that was cut off: its copies of what it replaces, and static pods that still have what was replaced.
[[ ! -d /var/lib/kgpu/certificates ]] || echo renewal-begun=1
for path in /var/lib/kgpu/stale-pods/*; do
  [[ ! -f $path ]] || ! process_lives "$(<"$path")" || printf 'stale-pod=%s\n' "${path##*/}"
done
# The address that its kubelet was given: of a flag that is there twice the last one counts, in these files that of the first.
for path in /etc/default/kubelet /etc/systemd/system/kubelet.service.d/*.conf /var/lib/kubelet/kubeadm-flags.env; do
  [[ -f $path ]] || continue
  while read -r -a words; do
    [[ ${words[0]:-} != '#'* ]] || continue
    for word in "${words[@]//\"/}"; do
      [[ $word != *--node-ip=* ]] || printf 'node-ip=%s\n' "${word##*--node-ip=}"
    done
  done <"$path"
done

# One question to the API server: its nodes and workloads; and one for the names of tokens, never their secrets.
# The answers are lines of tab-separated fields.
# shellcheck disable=SC2016,SC2154 # Go's templates; that of nodes is the library's
cluster_template='{{range .items}}{{if eq .kind "Node"}}'$node_template'{{else if eq .kind "DaemonSet"}}daemonset	{{.metadata.namespace}}	{{.metadata.name}}	{{.status.desiredNumberScheduled}}	{{.status.numberAvailable}}	{{with .metadata.annotations}}{{with index . "kgpu.dev/manifest-sha256"}}{{js .}}{{end}}{{end}}	{{range .spec.template.spec.containers}}{{range .env}}{{if eq .name "WEAVE_NO_FASTDP"}}bridge{{end}}{{end}}{{end}}
{{else}}deployment	{{.metadata.namespace}}	{{.metadata.name}}	{{.spec.replicas}}	{{.status.availableReplicas}}	{{with .metadata.annotations}}{{with index . "kgpu.dev/manifest-sha256"}}{{js .}}{{end}}{{end}}
{{end}}{{end}}'
token_template='{{range .items}}{{index .data "token-id"}} {{index .data "description"}}
{{end}}'
if [[ -f /etc/kubernetes/admin.conf ]]; then
  echo control-plane=1
  while read -r key value _; do
    [[ $key != server: ]] || printf 'control-plane-server=%s\n' "$value"
  done </etc/kubernetes/admin.conf
  blob cluster-ca /etc/kubernetes/pki/ca.crt
  for part in apiserver etcd; do
    while read -r key value _; do
      [[ $key != image: ]] || printf '%s-image=%s\n' "$part" "$value"
    done 2>/dev/null <"/etc/kubernetes/manifests/${part/#api/kube-api}.yaml"
  done
  for path in /etc/kubernetes/manifests/{kube-apiserver,kube-controller-manager,etcd}.yaml; do
    while read -r key value _; do
      case $value in
        --advertise-address=* | --service-cluster-ip-range=* | --cluster-cidr=* | --cluster-name=* | --initial-cluster=* | \
          --enable-admission-plugins=* | --admission-control-config-file=* | --audit-log-path=* | --encryption-provider-config=*) printf 'control-plane-flag=%s\n' "${value#--}" ;;
      esac
    done 2>/dev/null <"$path"
  done
  served_at=$(api_server_address)
  [[ -z $served_at ]] || certificate served= <(timeout 5 openssl s_client -connect "$served_at" </dev/null 2>/dev/null)
  # kubectl keeps its cache below HOME; there can be none. It has --cache-dir since 1.8, -A since 1.14.
  ask=(env HOME=/proc/kgpu-no-home kubectl --kubeconfig /etc/kubernetes/admin.conf get)
  # objects SECONDS prints what the API server says within this time for all of it.
  objects() {
    timeout "$1" "${ask[@]}" nodes,daemonsets,deployments --all-namespaces --request-timeout="$(($1 - 2))s" -o go-template="$cluster_template" 2>/dev/null
  }
  # asked sets answer. One that is down refuses at once. One that is slow is asked again, and so is one that is there and fails, as
  # while its etcd elects a leader: without its answer a plan begins from an empty cluster.
  asked() {
    local began now patience=10
    for _ in 1 2 3 4; do
      read -r began _ </proc/uptime
      if answer=$(objects "$patience"); then return 0; fi
      read -r now _ </proc/uptime
      if ((${now%.*} - ${began%.*} >= 2)); then
        [[ $patience == 10 ]] || return 1
      else
        timeout 5 "${ask[@]}" --raw /version --request-timeout=4s >/dev/null 2>&1 || return 1
        sleep 2
      fi
      patience=30
    done
    return 1
  }
  if asked; then
    echo api=1
    while IFS= read -r line; do
      [[ -z $line ]] || printf 'cluster=%s\n' "$line"
    done <<<"$answer"
    told token "${ask[@]}" secrets -n kube-system --request-timeout=20s --field-selector type=bootstrap.kubernetes.io/token -o go-template="$token_template"
  fi
fi

# --- the names that this host knows API servers by: of kgpu's lines, and of its kubeconfigs; and where they lead it
names=' '
while read -r name; do
  [[ $name =~ ^[A-Za-z0-9.-]+$ && $name == *[A-Za-z]* && $names != *" $name "* ]] || continue
  names+="$name "
  told "resolved=$name" timeout 5 getent ahosts "$name"
done < <(
  exec sed -nE -e 's/^[^ ]+ (api-[^ ]+) # kgpu$/\1/p' -e 's|^ +server: https://([^/:]+):[0-9]+$|\1|p' /etc/hosts /etc/kubernetes/{kubelet,admin}.conf 2>/dev/null
)

# --- who holds the cluster. Others who only look may do so at the same time.
held() (
  { exec 6</var/lib/kgpu/operator/lock; } 2>/dev/null || exit 1
  ! flock --shared --nonblock 6
)
if held; then
  echo operator=held
  each_of operator /var/lib/kgpu/operator/holder
elif [[ -e /var/lib/kgpu/operator ]]; then
  echo operator-left=1 # by a run that was cut off or killed
fi
echo end=1
