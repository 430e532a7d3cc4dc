#!/usr/bin/env bash
# Loads the driver and looks whether it sees all cards. Values: cards (how many), left_out (addresses of those that do not
# count, a line each), persistence (the unit that keeps the driver initialised; nvidia-persistenced.service). Files: modules-load.d.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

cards=$(value cards)
nvidia_left_out=$(value_or left_out '')
persistence=$(value_or persistence nvidia-persistenced.service)
library=$(nvidia_library) || fail GPU_DRIVER_MISSING 'the libraries of the driver are not installed'

# load MODULE loads it, or says why that does not work.
load() {
  local said status=0 nouveau off
  [[ ! -d /sys/module/$1 ]] || return 0
  said=$(modprobe -- "$1" 2>&1) || status=$?
  if [[ $status -eq 0 && -d /sys/module/$1 ]]; then return 0; fi
  if off=$(module_off "$1"); then fail HOST_MODULE_DISABLED "module $1 is kept out by $off"; fi
  printf '%s\n' "$said" >&2
  nvidia_said >&2
  case $said in
    *'Key was rejected'* | *'Required key not available'* | *'Operation not permitted'*)
      fail GPU_MODULE_REJECTED "Secure Boot: the kernel does not trust the signature of $1" ;;
    *'not found'*) nvidia_build_failed "kernel $(uname -r) has no module $1" ;;
    *'No such device'*)
      nouveau=$(nvidia_cards_of nouveau | paste -sd' ')
      [[ -z $nouveau ]] || fail GPU_NOUVEAU_BUSY "nouveau has the cards: $nouveau"
      fail GPU_NOT_ALL_CARDS "0 of $cards cards: the driver takes none of $(nvidia_cards | paste -sd' ')$(kernel_says)"
      ;;
  esac
  fail STEP_FAILED "modprobe $1: $said"
}

# kernel_says prints the driver's last words in the kernel's log, as the end of a sentence.
kernel_says() {
  local said
  said=$(nvidia_said)
  printf '%s' "${said:+; the kernel says: $said}"
}

# reload brings the module of the libraries in for the one that is loaded, which works only while nothing uses that.
reload() {
  local old=$1 unit file
  file=$(nvidia_module_file) || file=none
  [[ $file == "$library" ]] || fail GPU_DRIVER_MISMATCH "the loaded module is $old, the libraries are $library, and there is no module $library for kernel $(uname -r)"
  for unit in nvidia-imex.service nvidia-fabricmanager.service "$persistence"; do
    unit_active "$unit" || continue
    remember_unit "$unit"
    systemctl stop -- "$unit"
    stopped+=("$unit")
  done
  if nvidia_unload; then return 0; fi
  load nvidia_uvm
  start_again
  fail GPU_DRIVER_MISMATCH "the loaded module is $old, the libraries are $library, and the cards are in use by: $(nvidia_users)"
}

# start_again starts what reload stopped.
stopped=()
start_again() {
  local unit
  for unit in "${stopped[@]}"; do
    systemctl start -- "$unit" || echo "$unit does not start again"
  done
}

# device_nodes makes the nodes that no program of the driver's packages makes at once.
# Source: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (device node verification).
device_nodes() {
  local major name
  if command -v nvidia-modprobe >/dev/null; then nvidia-modprobe -u -c 0 || true; fi
  while read -r major name; do
    [[ $name == nvidia-uvm ]] || continue
    [[ -e /dev/nvidia-uvm ]] || mknod -m 666 /dev/nvidia-uvm c "$major" 0
    [[ -e /dev/nvidia-uvm-tools ]] || mknod -m 666 /dev/nvidia-uvm-tools c "$major" 1
  done </proc/devices
}

# seen prints the PCI addresses that nvidia-smi lists, as sysfs writes them.
seen() {
  local domain rest
  while IFS=: read -r domain rest; do
    if [[ $domain =~ ^[0-9A-Fa-f]{8}$ ]]; then printf '%04x:%s\n' "0x$domain" "${rest,,}"; fi
  done <"$smi_log"
}

# check_cards fails unless nvidia-smi lists all cards.
check_cards() {
  local card text
  local -a listed lost=()
  nvidia_smi --query-gpu=pci.bus_id --format=csv,noheader
  mapfile -t listed < <(seen)
  text=$(grep -vE '^[0-9A-Fa-f]{8}:' "$smi_log" | paste -sd' ') || text=
  if [[ -n $text ]]; then echo "nvidia-smi says: $text"; fi
  if [[ ${#listed[@]} -ge $cards ]]; then return 0; fi
  for card in $(nvidia_cards); do
    [[ " ${listed[*]} " == *" $card "* ]] || lost+=("$card")
  done
  if [[ ${#lost[@]} -eq 0 ]]; then lost=('(no longer on the PCI bus)'); fi
  fail GPU_NOT_ALL_CARDS "${#listed[@]} of $cards cards: the driver does not see ${lost[*]}${text:+; nvidia-smi says: $text}$(kernel_says)"
}

if loaded=$(nvidia_loaded) && [[ $loaded != "$library" ]]; then reload "$loaded"; fi
nvidia_claim load
install_files
load nvidia
load nvidia_uvm
loaded=$(nvidia_loaded) || loaded='of no version'
[[ $loaded == "$library" ]] || fail GPU_DRIVER_MISMATCH "the module that was loaded is $loaded, the libraries are $library"
device_nodes
# The step before this one may have stopped it, too.
if systemctl is-enabled -q -- nvidia-fabricmanager.service 2>/dev/null && ! unit_active nvidia-fabricmanager.service; then
  stopped+=(nvidia-fabricmanager.service)
fi
start_again
# The cards are looked at even if it does not start: they may be why.
started=yes
if [[ $(unit_property "$persistence" LoadState) == loaded ]] && ! unit_enabled "$persistence"; then
  remember_unit "$persistence"
  systemctl enable -q --now -- "$persistence" || started=no
fi
check_cards
[[ $started == yes ]] || unit_failed "$persistence"
