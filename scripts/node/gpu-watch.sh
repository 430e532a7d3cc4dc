#!/usr/bin/env bash
# Tells the cluster by the condition GPUHealthy of this node whether the driver reaches all cards. kgpu doctor --install-watch
# put it here; kgpu-gpu-watch.timer runs it every minute. It asks with the kubelet's own credentials, which may write the
# status of their own node and nothing of others (NodeRestriction); taints they may not set. Arguments: the node's name, and the
# addresses of the cards that the cluster does without.
set -euo pipefail
conf=/etc/kubernetes/kubelet.conf
patience=20 # seconds for nvidia-smi
kube=(env HOME=/proc/kgpu-no-home timeout 20 kubectl --kubeconfig "$conf" --request-timeout=15s)

# field NAME prints what the kubelet's kubeconfig has under this name.
field() {
  sed -nE "s/^ *$1: *//p" "$conf" | head -n 1
}

# cards prints how many cards the PCI bus has but for those that are left out, or that others have, virtual machines say.
cards() {
  local device vendor class driver count=0
  for device in /sys/bus/pci/devices/*; do
    read -r vendor 2>/dev/null <"$device/vendor" || continue
    read -r class <"$device/class"
    [[ $vendor == 0x10de && $class == 0x03* ]] || continue
    driver=$(readlink "$device/driver") || driver=
    [[ ${driver##*/} == @(|nvidia|nouveau|nvidiafb|rivafb) && " ${left_out[*]} " != *" ${device##*/} "* ]] || continue
    count=$((count + 1))
  done
  printf '%s' "$count"
}

# listed prints what nvidia-smi lists, and its status. One that is stuck in the kernel cannot be ended: it is left behind.
listed() {
  timeout -k 1 "$((patience + 4))" cat < <(
    exec 2>&1 </dev/null
    status=0
    timeout -k 2 "$patience" nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader || status=$?
    printf '\nstatus %s\n' "$status"
  ) || true
}

# stuck tells whether a nvidia-smi waits in the kernel for longer than one is waited for: another would only join it, and
# none of them ever ends.
stuck() {
  ps -eo state=,etimes=,comm= | awk -v patience="$patience" '$1 == "D" && $2 > patience && $3 == "nvidia-smi" { n++ } END { exit !n }'
}

# verdict sets status, reason and message of the condition.
verdict() {
  local want have answer='' log
  want=$(cards)
  stuck || answer=$(listed)
  have=$(grep -cE '^[0-9A-Fa-f]{8}:' <<<"$answer") || have=0
  log=$(timeout 10 journalctl -q -k -b --no-pager -o cat 2>/dev/null </dev/null | grep -E 'NVRM: Xid \([^)]*\): 79,|has fallen off the bus' | tail -n 1) || log=
  status=False
  if [[ ! $answer =~ status\ ([0-9]+)$ || ${BASH_REMATCH[1]} == 124 || ${BASH_REMATCH[1]} == 137 ]]; then
    reason=DriverHangs message='nvidia-smi does not answer'
  elif [[ -n $log ]]; then
    reason=CardLost message=$log
  elif [[ $have == 0 && ${BASH_REMATCH[1]} != 0 && -n ${answer%%$'\n'*} ]]; then
    reason=DriverFails message="nvidia-smi: ${answer%%$'\n'*}"
  elif [[ $have -lt $want ]]; then
    reason=CardLost message="the driver reaches $have of $want cards"
  else
    status=True reason=AllCardsAnswer message="the driver reaches $have of $want cards"
  fi
}

name=$1
left_out=("${@:2}")
verdict
echo "GPUHealthy=$status: $message"
now=$(date -u +%FT%TZ)
read -r before since <<<"$("${kube[@]}" get node "$name" -o go-template='{{range .status.conditions}}{{if eq .type "GPUHealthy"}}{{.status}} {{.lastTransitionTime}}{{end}}{{end}}')"
if [[ $before != "$status" || -z ${since:-} ]]; then since=$now; fi
# What the kernel said becomes a word of JSON: without quotes, backslashes and control characters.
message=$(tr -d '\\"\000-\037' <<<"${message:0:300}")
# kubectl reads the status before it writes it, which a kubelet may not.
curl -fsS --max-time 20 --request PATCH --header 'Content-Type: application/strategic-merge-patch+json' --data @- \
  --cacert <(field certificate-authority-data | base64 -d) --cert "$(field client-certificate)" \
  "$(field server)/api/v1/nodes/$name/status" >/dev/null <<<"{\"status\":{\"conditions\":[{\"type\":\"GPUHealthy\",\"status\":\"$status\",\"reason\":\"$reason\",\"message\":\"$message\",\"lastHeartbeatTime\":\"$now\",\"lastTransitionTime\":\"$since\"}]}}"
