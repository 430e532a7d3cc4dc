# shellcheck shell=bash
# Prints what may be wrong with this host beyond its facts, as key=value lines between kgpu-doctor=1 and end=1. It is read by
# `bash -s` as root, writes nothing, waits for no program without a time limit, and bounds what each may print. It only
# collects: bootstrap/doctor judges.
set -u
export SYSTEMD_PAGER='' SYSTEMD_COLORS=0
patience=8 # seconds for a program
most=400   # lines of one thing
width=600  # bytes of a line
echo kgpu-doctor=1

# lines KEY prints a line KEY=… for each line of standard input, as many as there may be.
lines() {
  local key=$1
  awk -v key="$key" -v most="$most" -v width="$width" '
    { sub(/\r$/, "") }
    $0 == "" { next }
    n < most { n++; print key "=" substr($0, 1, width) }'
}

# asked COMMAND... prints what a program says. One that is stuck in the kernel, as nvidia-smi with a sick driver, cannot be
# ended, and neither can what waits for it: it is left behind, and only what reads from it ends.
asked() {
  command -v "$1" >/dev/null || return 127
  timeout --kill-after=1 "$((patience + 2))" cat < <(
    exec 2>&1 </dev/null # whatever is left behind holds nothing of this session
    status=0
    timeout --kill-after=1 "$patience" "$@" || status=$?
    printf '\n[status %s]\n' "$status"
  )
}

# each KEY COMMAND... prints the lines that a program says, without how it ended.
each() {
  local key=$1
  shift
  asked "$@" | grep -v '^\[status [0-9]*\]$' | lines "$key"
}

# --- the kernel's log of this boot: what concerns cards, memory, disks and confinement, and the stack of a task that hangs.
# The first and the last lines of that are the interesting ones. A journal of many months may take too long to read: the
# kernel itself has the last lines.
kernel_log() {
  local status=127
  if command -v journalctl >/dev/null; then
    timeout --kill-after=1 "$patience" journalctl -q -k -b --no-pager -o short-iso 2>/dev/null </dev/null
    status=$?
  fi
  [[ $status -lt 124 ]] || timeout --kill-after=1 "$patience" dmesg 2>/dev/null </dev/null
}
kernel_log | awk -v width="$width" '
  /blocked for more than/ { stack = 40 }
  /NVRM|[Nn][Vv][Ii][Dd][Ii][Aa]|nouveau|SXid|Out of memory: Killed|apparmor="DENIED"|Loading of module with unavailable key|Key was rejected|Remounting filesystem read-only|fallen off the bus/ || stack > 0 {
    stack--
    n++
    text = substr($0, 1, width)
    if (n <= 150) print "kernel-log=" text; else last[n % 250] = text
  }
  END { for (i = n < 400 ? 151 : n - 249; i <= n; i++) print "kernel-log=" last[i % 250] }'

# --- cards and driver
for path in /dev/nvidia[0-9]*; do [[ ! -e $path ]] || echo "device-node=$path"; done
for path in /proc/driver/nvidia-nvswitch/devices/*; do [[ ! -e $path ]] || echo "nvswitch=${path##*/}"; done
# smi KEY FIELDS prints what nvidia-smi lists, what else it says, and its exit status; 124 where it hangs.
smi() {
  local key=$1 line status=124
  shift
  while IFS= read -r line; do
    if [[ $line =~ ^\[status\ ([0-9]+)\]$ ]]; then
      status=${BASH_REMATCH[1]}
    elif [[ $line =~ ^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}: ]]; then
      printf '%s=%s\n' "$key" "${line:0:200}"
    elif [[ -n $line ]]; then
      printf '%s-said=%s\n' "$key" "${line:0:$width}"
    fi
  done < <(asked nvidia-smi --query-gpu="$1" --format=csv,noheader | head -n 100)
  printf '%s-status=%s\n' "$key" "$status"
}
if [[ -e /sys/module/nvidia/version ]] && command -v nvidia-smi >/dev/null; then
  answer=$(smi card pci.bus_id,persistence_mode)
  printf '%s\n' "$answer"
  # Whoever hangs once hangs again. Old drivers, and cards without MIG, do not know the second question.
  [[ $answer == *'card-status=0'* ]] && smi mig pci.bus_id,mig.mode.current,mig.mode.pending
fi
# Who waits in the kernel, without end perhaps.
asked ps -eo state=,pid=,comm= | awk '$1 == "D" { print $2, $3 }' | lines stuck

# For each installed kernel: has it the driver's module, and headers to build one?
read -r running </proc/sys/kernel/osrelease
for image in /boot/vmlinuz-*; do
  release=${image#/boot/vmlinuz-}
  [[ -d /lib/modules/$release ]] || continue
  module=no headers=no
  ! grep -qsE '/nvidia(-current|-tesla-470)?\.ko' "/lib/modules/$release/modules.dep" || module=yes
  [[ ! -e /lib/modules/$release/build/Makefile ]] || headers=yes
  printf 'kernel=%s %s %s %s\n' "$release" "$module" "$headers" "$([[ $release == "$running" ]] && echo running)"
done
each dkms dkms status nvidia
if [[ -d /var/lib/dkms ]] && command -v gcc >/dev/null; then
  read -r version </proc/version
  version=${version#*gcc}
  built='([0-9]+)\.[0-9]+\.[0-9]+'
  [[ ! ${version%%,*} =~ $built ]] || printf 'compiler=%s %s\n' "${BASH_REMATCH[1]}" "$(timeout 5 gcc -dumpversion 2>/dev/null | cut -d. -f1)"
fi

# --- units: name, state, result and how often it was started again; and the last words of those that are not well
units=(kubelet containerd docker cri-docker nvidia-persistenced nvidia-fabricmanager nvidia-cdi-refresh)
while read -r id state result restarts file; do
  printf 'unit=%s %s %s %s %s\n' "$id" "$state" "$result" "$restarts" "$file"
  if [[ $state == failed || $state == activating || ($state == inactive && $id =~ ^(kubelet|containerd|docker|cri-docker)$) ]]; then
    timeout 5 journalctl -q --no-pager -o cat -n 3 -u "$id.service" 2>/dev/null </dev/null | sed "s/^/$id /" | lines unit-said
  fi
done < <({
  timeout 10 systemctl show -p Id -p LoadState -p ActiveState -p Result -p NRestarts -p UnitFileState -- "${units[@]/%/.service}" 2>/dev/null
  echo # systemd puts an empty line between units
} | awk -F= '
    $1 != "" { have[$1] = $2; next }
    have["LoadState"] == "loaded" {
      sub(/\.service$/, "", have["Id"])
      print have["Id"], have["ActiveState"], word("Result", "-"), word("NRestarts", 0), word("UnitFileState", "-")
    }
    { split("", have) }
    function word(name, other) { return have[name] == "" ? other : have[name] }')

# --- how containers get their cards
for file in /etc/containerd/config.d/*.toml; do [[ ! -e $file ]] || echo "containerd-stray=$file"; done
if timeout 5 pgrep -x containerd >/dev/null 2>&1; then
  timeout "$patience" containerd config dump 2>/dev/null | awk '
    /^ *\[/ { section = $0 }
    section ~ /runtimes\.nvidia\.options/ && $1 == "SystemdCgroup" { print "nvidia-cgroup=" $3 }
    $1 == "default_runtime_name" { gsub(/["\047]/, "", $3); print "default-runtime=" $3 }'
fi
for file in /var/run/cdi/nvidia.yaml /etc/cdi/nvidia.yaml; do
  [[ ! -f $file ]] || head -c 1048576 "$file" | grep -ohE '\.so\.[0-9]{3}\.[0-9.]+' | sort | uniq -c | sort -rn | head -n 1 | awk -v file="$file" '{ sub(/^\.so\./, "", $2); print "cdi=" file " " $2 }'
done
awk '$1 == "cgroupDriver:" { print "kubelet-cgroup=" $2 }' /var/lib/kubelet/config.yaml 2>/dev/null

# --- packages: repositories by their files, holds of kgpu's that are gone, and the last upgrade of a driver
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [[ -f $file ]] || continue
  awk -v file="$file" '
    function say(url, by) {
      sub(/:\/\/[^\/@]*@/, "://", url) # a password
      if (url ~ /nvidia\.com|nvidia\.github\.io|download\.docker\.com|pkgs\.k8s\.io/) print "apt-source=" file "\t" url "\t" by
    }
    file ~ /\.list$/ && $1 ~ /^deb(-src)?$/ {
      by = ""
      if (match($0, /signed-by=[^] ]*/)) by = substr($0, RSTART + 10, RLENGTH - 10)
      sub(/\[[^]]*\]/, "")
      say($2, by)
    }
    file ~ /\.sources$/ && tolower($1) == "uris:" { uri = $2 }
    file ~ /\.sources$/ && tolower($1) == "signed-by:" { signed = $2 }
    file ~ /\.sources$/ && tolower($1) == "enabled:" { off = tolower($2) ~ /^(no|false|without|off|disable|0)$/ }
    file ~ /\.sources$/ && NF == 0 { stanza() }
    END { stanza() }
    function stanza() {
      if (uri != "" && !off) say(uri, signed)
      uri = signed = ""
      off = 0
    }' "$file"
done | head -n "$most"
timeout "$patience" apt-get indextargets --no-release-info 2>&1 >/dev/null | sed -nE '/^E: /{ s///; s#://[^/@ ]*@#://#g; s/^/apt-refuses=/p; q }'
for entry in /var/lib/kgpu/ledger/[0-9]*/; do
  kind='' package=''
  read -r kind 2>/dev/null <"$entry/kind"
  [[ $kind == hold ]] || continue
  read -r package 2>/dev/null <"$entry/args"
  [[ $(dpkg-query -W -f '${db:Status-Want} ${db:Status-Status}' -- "$package" 2>/dev/null) != 'install installed' ]] || echo "hold-lost=$package"
done | head -n "$most"
awk '/^Start-Date:/ { date = $2 " " $3 } /^Commandline:/ { command = substr($0, 14) }
  /^Upgrade:.*nvidia/ { last = date " " command } END { if (last != "") print "driver-upgraded=" last }' /var/log/apt/history.log 2>/dev/null

# --- disks, firewall
paths=()
for path in / /var /var/lib/kubelet /var/lib/containerd /var/lib/docker /var/lib/etcd; do [[ ! -d $path ]] || paths+=("$path"); done
timeout 5 df --output=source,pcent,target -- "${paths[@]}" 2>/dev/null | awk 'NR > 1 && $2 ~ /^[0-9]+%$/ && !seen[$1]++ { sub(/%/, "", $2); print "disk=" $3 " " $2 }'
if grep -q . /proc/net/ip_tables_names 2>/dev/null; then
  for backend in legacy nft; do
    printf 'kubernetes-rules=%s %s\n' "$backend" "$(timeout 5 "iptables-$backend-save" 2>/dev/null | grep -cE '^-A (KUBE|WEAVE)-')"
  done
fi
# --- the pod network
pod_network_ways

# --- the cluster, as its control plane sees it. What kubelets and pods may write as they like is escaped (js): a node that lies
# about itself must not get a line about another.
# shellcheck disable=SC2016 # Go's templates
plugin_template='pod=	{{.spec.nodeName}}	{{.metadata.name}}	{{js .status.phase}}	{{range .status.containerStatuses}}{{if not .ready}}{{.name}} {{with .state.waiting}}{{js .reason}} {{with .message}}{{js .}}{{end}}{{end}}{{with .state.terminated}}{{js .reason}}{{end}}; {{end}}{{end}}
'
# What waits, for a node or with a container, of the namespaces that the cluster has for itself. Go's old templates know neither
# assignments nor prefixes: the beginning of a word is what a format leaves of it.
# shellcheck disable=SC2016
waiting_template='{{if .metadata.deletionTimestamp}}{{else}}{{if or (eq (printf "%.5s" .metadata.namespace) "kube-") (eq (printf "%.5s" .metadata.namespace) "kgpu-")}}waiting-pod=	{{.metadata.namespace}}	{{.metadata.name}}	{{with .spec.nodeName}}{{.}}{{end}}	{{range .status.conditions}}{{if eq .type "Ready"}}{{if ne .status "True"}}{{with .lastTransitionTime}}{{js .}}{{end}}{{end}}{{end}}{{end}}	{{range .status.conditions}}{{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{with .lastTransitionTime}}{{js .}}{{end}}{{end}}{{end}}{{end}}	{{range .status.conditions}}{{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}{{range .status.initContainerStatuses}}{{$name := .name}}{{with .state}}{{with .waiting}}	{{$name}} {{with .reason}}{{js (printf "%.100s" .)}}{{end}} {{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}{{range .status.containerStatuses}}{{$name := .name}}{{with .state}}{{with .waiting}}	{{$name}} {{with .reason}}{{js (printf "%.100s" .)}}{{end}} {{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}
{{end}}{{end}}'
# shellcheck disable=SC2016
event_template='event=	{{with .lastTimestamp}}{{.}}{{else}}{{.eventTime}}{{end}}	{{with .source}}{{with .host}}{{js .}}{{end}}{{end}}	{{js .reason}}	{{.metadata.namespace}}/{{with .involvedObject}}{{js .name}}{{end}}	{{with .message}}{{js .}}{{end}}
'
# One question for all of it: a kubectl takes longer to begin than the API server to answer.
# shellcheck disable=SC2016,SC2154 # the template of nodes is the library's
cluster_template='{{range .items}}{{if eq .kind "Node"}}'$node_template'{{else if eq .kind "Event"}}{{if eq (printf "%v" .type) "Warning"}}'$event_template'{{end}}{{else}}'\
'{{if eq .metadata.namespace "kube-system"}}{{if .metadata.labels}}{{if eq (printf "%v" (index .metadata.labels "app.kubernetes.io/name")) "nvidia-device-plugin"}}'$plugin_template'{{end}}'\
'{{if eq (printf "%v" (index .metadata.labels "name")) "weave-net"}}weave-pod={{.metadata.name}} {{.spec.nodeName}}
{{end}}{{end}}{{end}}'$waiting_template'{{end}}{{end}}'
conf=/etc/kubernetes/admin.conf
if [[ -f $conf ]]; then
  echo control-plane=1
  # kubectl keeps its cache below HOME; there can be none.
  # ask SECONDS ARG... asks the API server, which may be slow and take this long.
  ask() {
    timeout --kill-after=1 "$1" env HOME=/proc/kgpu-no-home kubectl --kubeconfig "$conf" --request-timeout="$(($1 - 2))s" "${@:2}"
  }
  if cluster=$(ask 22 get nodes,pods,events --all-namespaces -o go-template="$cluster_template" 2>/dev/null); then
    echo api=1
    # of KEY prints the lines with this key.
    of() {
      grep "^$1=" <<<"$cluster"
    }
    sed -n $'s/^node\t/node=&/p' <<<"$cluster" | head -n 5000
    of pod | head -n 5000
    of weave-pod | head -n 5000
    of waiting-pod | awk -F '\t' '$6 $8 != ""' | head -n "$most"
    # How the logs of those end whose programs end again and again.
    while IFS=$'\t' read -r space name container; do
      ask 5 -n "$space" logs "$name" -c "$container" --tail=20 --limit-bytes=16384 2>/dev/null | tr -d '\000-\011\013-\037\177' |
        grep -v '^ *$' | tail -n 1 | sed -E "s/((token|password|secret|key)[a-z_]*\"?[=:] ?\"?)[^ &\"]+/\1…/gI; s|^|$space/$name |" | lines waiting-said
    done < <(of waiting-pod | awk -F '\t' '{ for (i = 8; i <= NF; i++) if (split($i, word, " ") > 1 && word[2] == "CrashLoopBackOff") { print $2 "\t" $3 "\t" word[1]; break } }' | head -n 5)
    of event | grep -E 'FailedCreatePodSandBox|no runtime for|Auto-detected mode as|ldcache|nvidia|NVML' | tail -n "$most"
    # said KEY SELECTOR PATTERN prints what pods say of themselves, with [pod/NAME/CONTAINER] in front.
    said() {
      ask 8 -n kube-system logs -l "$2" --all-containers --prefix --tail=60 --max-log-requests=50 2>/dev/null | grep -E "$3" | tail -n "$most" | lines "$1"
    }
    ! of pod >/dev/null || said plugin-said app.kubernetes.io/name=nvidia-device-plugin 'Incompatible strategy|No devices found. Waiting|invalid device discovery strategy|Failed to initialize NVML|marking device as unhealthy|ERROR_GPU_IS_LOST'
    ! of weave-pod >/dev/null || said weave-said name=weave-net 'Inconsistent bridge state|is different than requested|Set cannot be destroyed'
  fi
fi
echo end=1
