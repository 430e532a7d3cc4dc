#!/bin/bash
# kmod of a lab's host with cards: stands in front of the real one, as modprobe, rmmod, modinfo and lsmod do, for the modules
# nvidia, nvidia_uvm, nvidia_modeset and nouveau, and mlx5_ib and ib_umad where there are NVLink 5 switches. They are not kernel modules: what they would show in /sys, /proc and /dev is
# written there. Everything else goes to the real kmod.
# kmod coldplug: what udev does at boot, load the modules that fit the cards.
set -u
shopt -s nullglob

call=${0##*/}
kernel=$(uname -r)
table=/etc/kgpu-lab/gpu-cards
devices=/sys/bus/pci/devices

real() { exec -a "$call" /usr/bin/kmod.real "$@"; }
has() { grep -q "^$1" "$table"; }
loaded() { [[ -d /sys/module/$1 ]]; }
users() { cat "/sys/module/$1/refcnt"; }
addresses() { sed -n "s/^$1 \([^ ]*\).*/\1/p" "$table"; }
fail() { # KIND MESSAGE…
  echo "$call: $1: ${*:2}" >&2
  return 1
}

# ours NAME : whether NAME is one of the modules that stand in, with $module as its name in /sys
ours() {
  module=${1//-/_}
  case $module in
    nvidia | nvidia_uvm | nvidia_modeset) ;;
    nouveau) has nouveau ;;
    mlx5_ib | ib_umad) has bridge ;;
    *) false ;;
  esac
}

# file MODULE [KERNEL] : the stand-in for a module file; DKMS's come before the distribution's, as in depmod's search path
file() {
  local files
  if [[ $1 == nouveau ]]; then
    echo "/lib/modules/${2-$kernel}/kernel/drivers/gpu/drm/nouveau/nouveau.ko"
    return
  fi
  if [[ $1 == mlx5_ib || $1 == ib_umad ]]; then
    echo "/lib/modules/${2-$kernel}/kernel/drivers/infiniband/$1.ko"
    return
  fi
  files=("/lib/modules/${2-$kernel}"/updates/dkms/nvidia.ko "/lib/modules/${2-$kernel}"/kernel/nvidia-*/nvidia.ko)
  for f in "${files[@]}"; do
    [[ -e $f ]] || continue
    echo "$f"
    return
  done
  return 1
}
fact() { sed -n "s/^$2=//p" "$1"; } # FILE KEY

# fits FILE : whether the driver runs the cards of this host: the open modules need Turing or newer, the proprietary ones do not
# run Blackwell, and branches from 590 on not what is older than Turing (NVIDIA's driver installation guide, "Kernel modules")
fits() {
  local flavour version architectures
  flavour=$(fact "$1" flavour) version=$(fact "$1" version)
  architectures=$(sed -n 's/^gpu \([^ ]* \)\{4\}\([^ ]*\).*/\2/p' "$table")
  case $architectures in
    *Kepler*) false ;;
    *Pascal* | *Volta*) [[ $flavour == proprietary && ${version%%.*} -lt 590 ]] ;;
    *Blackwell*) [[ $flavour == open ]] ;;
  esac
}

# show MODULE USERS : the module in /sys and in the list of modules
show() {
  mkdir -p "/sys/module/$1"
  echo "$2" >"/sys/module/$1/refcnt"
  echo live >"/sys/module/$1/initstate"
  list
}

# list : writes the loaded stand-ins into /proc/modules, which only kernels with loadable modules have
list() {
  [[ -e /proc/modules ]] || return 0
  local others
  others=$(grep -vE '^(nvidia|nvidia_uvm|nvidia_modeset|nouveau|mlx5_ib|ib_umad) ' /proc/modules)
  { [[ -z $others ]] || echo "$others"; loaded_lines '%s 1048576 %s %s Live 0x0000000000000000\n'; } >/proc/modules
}
loaded_lines() { # FORMAT of name, users, used by
  local m by
  for m in nvidia_uvm nvidia_modeset nvidia nouveau ib_umad mlx5_ib; do
    loaded "$m" || continue
    by=-
    [[ $m != nvidia ]] || by=$(holders)
    # shellcheck disable=SC2059 # the format is the caller's
    printf "$1" "$m" "$(users "$m")" "${by:--}"
  done
}
holders() {
  local m
  for m in nvidia_uvm nvidia_modeset; do
    ! loaded "$m" || printf '%s,' "$m"
  done
}

bind() { # DRIVER ADDRESS…
  local driver=$1 address
  mkdir -p "/sys/bus/pci/drivers/$driver"
  for address in "${@:2}"; do
    [[ ! -e $devices/$address/driver ]] || continue
    ln -s "../../drivers/$driver" "$devices/$address/driver"
    ln -s "../../devices/$address" "/sys/bus/pci/drivers/$driver/$address"
  done
}
unbind() { # DRIVER
  local link
  for link in "/sys/bus/pci/drivers/$1"/*:*; do
    rm "$devices/${link##*/}/driver" "$link"
  done
  rmdir "/sys/bus/pci/drivers/$1"
}

node() { # NAME MAJOR MINOR
  [[ -e /dev/$1 ]] || mknod -m 666 "/dev/$1" c "$2" "$3"
}

# The majors are those that the real modules have or usually get: Documentation/admin-guide/devices.txt, 195; the others are given
# out by the kernel. Nothing is behind these nodes.
load() { # MODULE
  local f address minor=0
  ! loaded "$1" || return 0
  f=$(file "$1") || { fail FATAL "Module $1 not found in directory /lib/modules/$kernel"; return; }
  if [[ $1 == nouveau ]]; then
    show nouveau "$(sed -n 's/^nouveau //p' "$table")"
    # shellcheck disable=SC2046 # addresses are words
    bind nouveau $(addresses gpu)
    return
  fi
  if [[ $1 == mlx5_ib || $1 == ib_umad ]]; then
    show "$1" 0
    return
  fi
  [[ $1 == nvidia ]] || load nvidia || return
  case $1 in
    nvidia)
      if has secureboot && [[ $(fact "$f" signed) != yes ]]; then
        fail ERROR "could not insert 'nvidia': Key was rejected by service"
        return
      fi
      if loaded nouveau || ! fits "$f"; then
        fail ERROR "could not insert 'nvidia': No such device"
        return
      fi
      mkdir -p /sys/module/nvidia /proc/driver/nvidia/gpus
      fact "$f" version >/sys/module/nvidia/version
      version_text "$f" >/proc/driver/nvidia/version
      # shellcheck disable=SC2046 # addresses are words
      bind nvidia $(addresses gpu)
      for address in $(addresses gpu); do
        mkdir -p "/proc/driver/nvidia/gpus/$address"
        card_text "$address" "$minor" >"/proc/driver/nvidia/gpus/$address/information"
        node "nvidia$minor" 195 $((minor++))
      done
      node nvidiactl 195 255
      switches
      show nvidia 0
      ;;
    nvidia_uvm)
      node nvidia-uvm 510 0
      node nvidia-uvm-tools 510 1
      ;;&
    nvidia_modeset)
      node nvidia-modeset 195 254
      ;;&
    *)
      echo $(($(users nvidia) + 1)) >/sys/module/nvidia/refcnt
      show "$1" 0
      ;;
  esac
}

version_text() { # FILE
  local kind='NVIDIA UNIX x86_64 Kernel Module'
  [[ $(fact "$1" flavour) != open ]] || kind='NVIDIA UNIX Open Kernel Module for x86_64'
  echo "NVRM version: $kind  $(fact "$1" version)  a stand-in of the lab"
}

card_text() { # ADDRESS MINOR
  local uuid name
  read -r uuid _ _ _ _ _ name < <(sed -n "s/^gpu $1 //p" "$table")
  printf 'Model: \t\t %s\nGPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %s\n' "$name" "$uuid" "$1" "$2"
}

switches() {
  local address
  has switch || return 0
  node nvidia-nvswitchctl 511 255
  for address in $(addresses switch); do
    mkdir -p "/proc/driver/nvidia-nvswitch/devices/$address"
    bind nvidia-nvswitch "$address"
  done
}

unload() { # MODULE
  case $1 in
    nvidia)
      rm -rf /proc/driver/nvidia /proc/driver/nvidia-nvswitch /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-nvswitchctl
      unbind nvidia
      ! has switch || unbind nvidia-nvswitch
      ;;
    nvidia_uvm) rm /dev/nvidia-uvm /dev/nvidia-uvm-tools ;;
    nvidia_modeset) rm /dev/nvidia-modeset ;;
    nouveau) unbind nouveau ;;
  esac
  rm -r "/sys/module/$1"
  case $1 in
    nvidia_*) echo $(($(users nvidia) - 1)) >/sys/module/nvidia/refcnt ;;
  esac
  list
}

# each VERB ARGUMENTS… : VERB for the modules that stand in, the real kmod for all others
each() {
  local verb=$1 argument status=0 some='' options=() stand_ins=() others=()
  shift
  for argument; do
    if [[ $argument == -* ]]; then
      options+=("$argument")
    elif [[ -n $some && $verb == insert ]] && ! option a all; then
      break # modprobe takes what follows one module's name as its parameters
    else
      some=yes
      if ours "$argument"; then stand_ins+=("$module"); else others+=("$argument"); fi
    fi
  done
  [[ ${#stand_ins[@]} != 0 ]] || real "$@"
  for argument in "${stand_ins[@]}"; do
    "$verb" "$argument" || status=1
  done
  [[ ${#others[@]} == 0 ]] || (real "${options[@]}" "${others[@]}") || status=1
  exit $status
}

insert() { # as modprobe
  if option n dry-run || option D show-depends; then
    file "$1" >/dev/null || fail FATAL "Module $1 not found in directory /lib/modules/$kernel"
  elif option b use-blacklist && blacklisted "$1"; then
    return 0
  elif option q quiet; then
    load "$1" 2>/dev/null
  else
    load "$1"
  fi
}

remove() { # as rmmod
  local by
  loaded "$1" || { fail ERROR "Module $1 is not currently loaded"; return; }
  [[ $(users "$1") != 0 ]] || { unload "$1"; return; }
  by=$(holders | tr , ' ')
  [[ $1 == nvidia && -n $by ]] || by=
  fail ERROR "Module $1 is in use${by:+ by: ${by% }}"
}

remove_unused() { # as modprobe -r, which also removes what only this module needed
  loaded "$1" || return 0
  [[ $(users "$1") == 0 ]] || { fail FATAL "Module $1 is in use."; return; }
  unload "$1"
  [[ $1 != nvidia_* || $(users nvidia) != 0 ]] || unload nvidia
}

blacklisted() { # MODULE, as modprobe.d(5) says it with a dash or an underscore
  grep -qshE "^[[:space:]]*(blacklist[[:space:]]+${1/_/[-_]}[[:space:]]*$|install[[:space:]]+${1/_/[-_]}[[:space:]]+/bin/(false|true))" \
    /etc/modprobe.d/*.conf /run/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf </dev/null
}

describe() { # modinfo [-F FIELD] [-k KERNEL] MODULE…
  local field='' wanted=$kernel names=() f status=0
  while (($#)); do
    case $1 in
      -F | --field) field=$2 && shift ;;
      --field=*) field=${1#*=} ;;
      -F*) field=${1#-F} ;;
      -n) field=filename ;;
      -k | --set-version) wanted=$2 && shift ;;
      -*) ;;
      *) names+=("$1") ;;
    esac
    shift
  done
  for name in "${names[@]}"; do
    ours "$name" || real "${arguments[@]}"
  done
  [[ ${#names[@]} != 0 ]] || real "${arguments[@]}"
  for name in "${names[@]}"; do
    ours "$name"
    if ! f=$(file "$module" "$wanted"); then
      fail ERROR "Module $name not found."
      status=1
      continue
    fi
    properties "$f" | if [[ -n $field ]]; then sed -n "s/^$field: *//p"; else cat; fi
  done
  exit $status
}
properties() { # FILE
  local license=NVIDIA
  printf '%-16s%s\n' filename: "$1"
  [[ $module != @(mlx5_ib|ib_umad) ]] || { printf '%-16s%s\n' license: 'Dual BSD/GPL'; return; }
  [[ $module != nouveau ]] || { printf '%-16s%s\n' license: 'GPL and additional rights' description: 'NVIDIA GPU driver'; return; }
  [[ $(fact "$1" flavour) != open ]] || license='Dual MIT/GPL'
  printf '%-16s%s\n' version: "$(fact "$1" version)" license: "$license" description: "a stand-in of the lab"
  [[ $(fact "$1" signed) != yes ]] || printf '%-16s%s\n' signer: 'a stand-in of the lab'
}

# at_boot : a blacklist counts from the next boot on, also without an initramfs made anew
at_boot() {
  local m
  if blacklisted nvidia || ! load nvidia; then
    ! has nouveau || blacklisted nouveau || load nouveau
  fi
  while read -r m; do
    ! ours "$m" || load "$module"
  done < <(cat /etc/modules-load.d/*.conf /run/modules-load.d/*.conf /usr/lib/modules-load.d/*.conf </dev/null)
  return 0
}

arguments=("$@")
option() { # LETTER WORD : whether it is among the arguments
  local argument
  for argument in "${arguments[@]}"; do
    [[ $argument == --$2 || $argument =~ ^-[a-zA-Z]*$1 ]] && return
  done
  return 1
}

case $call in
  modprobe)
    verb=insert
    ! option r remove || verb=remove_unused
    each "$verb" "$@"
    ;;
  rmmod) each remove "$@" ;;
  modinfo) describe "$@" ;;
  lsmod)
    [[ ! -e /proc/modules ]] || real
    printf '%-19s %8s  Used by\n' Module Size
    loaded_lines '%-19s  1048576  %s %s\n' | sed 's/,$//; s/ -$//'
    ;;
  kmod)
    [[ ${1-} == coldplug ]] || real "$@"
    at_boot
    ;;
  *) real "$@" ;;
esac
