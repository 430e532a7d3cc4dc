# shellcheck shell=bash
# NVIDIA's driver: its cards, its versions, its kernel modules, its tool.

# The driver's kernel modules, those that others use last.
nvidia_modules=(nvidia_uvm nvidia_peermem nvidia_drm nvidia_modeset nvidia)

# nvidia_cards prints the PCI addresses of the cards (class 03, display controllers), as sysfs writes them, without those
# that another kernel driver than those of displays has (vfio-pci, for virtual machines, say), and those of nvidia_left_out (a line each).
nvidia_left_out=
nvidia_cards() {
  local device vendor class driver
  for device in /sys/bus/pci/devices/*; do
    read -r vendor 2>/dev/null <"$device/vendor" || continue
    [[ $vendor == 0x10de ]] || continue
    read -r class <"$device/class"
    [[ $class == 0x03* ]] || continue
    driver=$(readlink "$device/driver") || driver=
    [[ ${driver##*/} == @(|nvidia|nouveau|nvidiafb|rivafb) && " ${nvidia_left_out//$'\n'/ } " != *" ${device##*/} "* ]] || continue
    printf '%s\n' "${device##*/}"
  done
}

# nvidia_cards_of DRIVER prints the addresses of those that this kernel driver has.
nvidia_cards_of() {
  local card driver
  for card in $(nvidia_cards); do
    driver=$(readlink "/sys/bus/pci/devices/$card/driver") || continue
    if [[ ${driver##*/} == "$1" ]]; then printf '%s\n' "$card"; fi
  done
}

# nvidia_loaded prints the version of the loaded module; fails when there is none.
nvidia_loaded() {
  cat /sys/module/nvidia/version 2>/dev/null
}

# nvidia_library prints the version of the driver's libraries; fails when there are none.
nvidia_library_dirs=(/usr/lib/{x86_64,aarch64}-linux-gnu /usr/lib /usr/lib64)
nvidia_library() {
  local dir file
  for dir in "${nvidia_library_dirs[@]}"; do
    file=$(readlink -e "$dir/libnvidia-ml.so.1") || continue
    printf '%s\n' "${file##*.so.}"
    return
  done
  return 1
}

# nvidia_module_file [KERNEL] prints the version of the module that modprobe would load; fails when there is none.
# Debian gives the file another name, and modprobe an alias that modinfo does not know.
nvidia_module_file() {
  local name
  for name in nvidia nvidia-current nvidia-tesla-470; do
    if modinfo ${1:+-k "$1"} -F version "$name" 2>/dev/null; then return; fi
  done
  return 1
}

# nvidia_said prints the driver's last words in the kernel's log.
nvidia_said() {
  journalctl -q -k -b --no-pager -o cat 2>/dev/null | grep -E 'NVRM|Xid' | tail -n 5 || true
}

# nvidia_claim remembers that kgpu brings the driver's modules into a kernel that has none: undo unloads them. It is
# called before packages come, which may load them, and again before they are loaded: they are gone before the packages go.
nvidia_claim() {
  if [[ ! -d /sys/module/nvidia ]] || ledger_has nvidia; then record_once nvidia "$1"; fi
}

# nvidia_unload takes the driver's modules out of the kernel; fails when a program uses a card.
nvidia_unload() {
  local module
  for module in "${nvidia_modules[@]}"; do
    [[ ! -d /sys/module/$module ]] || modprobe -r -- "$module" 2>&1 || return 1
  done
}

# nvidia_away stops what the driver's packages keep running, takes the modules out of the kernel and their nodes away;
# fails when a program uses a card.
nvidia_away() {
  local unit
  [[ -d /sys/module/nvidia ]] || return 0
  for unit in nvidia-imex.service nvidia-fabricmanager.service nvidia-persistenced.service; do
    systemctl stop -- "$unit" 2>/dev/null || true
  done
  nvidia_unload && rm -rf /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-*
}

# nvidia_users prints the programs that have a card open, as "name (pid N)", separated by commas.
nvidia_users() {
  local pid name
  find /proc/[0-9]*/fd -maxdepth 1 -lname '/dev/nvidia*' -printf '%h\n' 2>/dev/null | sort -u |
    while IFS=/ read -r _ _ pid _; do
      name='a program'
      read -r name 2>/dev/null <"/proc/$pid/comm" || true
      printf '%s (pid %s)\n' "$name" "$pid"
    done | paste -sd, || true
}

# nvidia_smi_try ARG... leaves what nvidia-smi prints in $smi_log and its status in $smi_status. With a sick driver it may be
# stuck in the kernel, where no signal reaches it, nor the one who waits for it: after $smi_patience seconds nobody does.
smi_log=$KGPU_STEP/nvidia-smi.log
smi_status=0
smi_patience=40
nvidia_smi_try() {
  local smi end=$(($(uptime_seconds) + smi_patience))
  timeout -k 5 30 nvidia-smi "$@" >"$smi_log" 2>&1 </dev/null &
  smi=$!
  smi_status=124
  while kill -0 "$smi" 2>/dev/null && [[ $(uptime_seconds) -lt $end ]]; do sleep 0.1; done
  if ! kill -0 "$smi" 2>/dev/null; then
    smi_status=0
    wait "$smi" || smi_status=$?
  fi
}

# nvidia_smi ARG... does so, and ends the step where it does not answer.
nvidia_smi() {
  nvidia_smi_try "$@"
  [[ $smi_status == 124 || $smi_status == 137 ]] || return 0
  nvidia_said >&2
  fail GPU_HUNG 'nvidia-smi does not answer'
}

# nvidia_fabric_waits prints what the log of `nvidia-smi -q` says of cards that have not got their place in the fabric, which CUDA
# waits for; nothing where they all have, or need none.
nvidia_fabric_waits() {
  if [[ $smi_status != 0 && $smi_status != 14 ]]; then
    printf 'nvidia-smi ends with status %s: %s\n' "$smi_status" "$(head -n 1 "$smi_log")"
    return
  fi
  awk -F ' *: ' '
    /^GPU / { card = substr($0, 5); fabric = 0 }
    /^ +Fabric$/ { fabric = 1 }
    fabric && /^ +State +: / { state = $2 }
    fabric && /^ +Status +: / {
      fabric = 0
      if (state != "N/A" && (state != "Completed" || $2 != "Success")) print "card " card ": fabric State: " state ", Status: " $2
    }' "$smi_log" | paste -sd';' | sed 's/;/; /g'
}

# nvidia_build_failed DETAIL ends the step when there is no module; the end of the build's log is shown.
nvidia_build_failed() {
  local log newest=
  for log in /var/lib/dkms/nvidia*/*/build/make.log; do
    if [[ -f $log && (-z $newest || $log -nt $newest) ]]; then newest=$log; fi
  done
  if [[ -n $newest ]]; then
    printf '%s ends with:\n' "$newest" >&2
    tail -n 30 "$newest" >&2
  fi
  fail GPU_MODULE_BUILD "$1"
}
