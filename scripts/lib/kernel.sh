# shellcheck shell=bash
# Kernel modules and sysctls.

# load_module NAME... loads modules that are not in the kernel yet. Each that comes along has an entry of its own: undo, which
# goes backwards, unloads it after those that need it.
load_module() {
  local name module
  for name in "$@"; do
    if module_there "$name"; then continue; fi
    modprobe -n -q -- "$name" || module_fails "$name" "kernel $(uname -r) has no module $name"
    for module in $(modules_coming "$name"); do record_once module "$module"; done
    modprobe -- "$name" || module_fails "$name" "modprobe $name failed"
    # What modprobe runs in the place of loading may do nothing, and end well.
    module_there "$name" || module_fails "$name" "modprobe $name ended well, and kernel $(uname -r) does not have the module"
  done
}

# module_there NAME tells whether the kernel has the module, loaded or built in. One that is built in need not be in /sys.
module_there() {
  local module=${1//-/_}
  [[ -d /sys/module/$module ]] || grep -qE "[[:blank:]]$module\$" /proc/filesystems ||
    modprobe --show-depends -- "$1" 2>/dev/null | grep -E "^builtin ${module//_/[-_]}( |\$)" >/dev/null
}

# module_fails NAME DETAIL ends the step: somebody keeps the module out, or else it cannot be had.
module_fails() {
  local off
  if off=$(module_off "$1"); then fail HOST_MODULE_DISABLED "module $1 is kept out by $off"; fi
  fail HOST_MODULE_MISSING "$2"
}

# module_off NAME prints what keeps the module out, as FILE:LINE:WORDS of modprobe's configuration; fails when nothing does. Of files
# with the same name modprobe reads the first. Source: modprobe.d(5).
module_off() {
  local file name=${1//[-_]/[-_]} seen=' '
  for file in /{etc,run,usr/local/lib,usr/lib,lib}/modprobe.d/*.conf; do
    [[ -e $file && $seen != *" ${file##*/} "* ]] || continue
    seen+="${file##*/} "
    if grep -sHnE -m 1 "^[[:blank:]]*((install|blacklist)[[:blank:]]+${name}([[:blank:]]|$)|alias[[:blank:]]+${name}[[:blank:]]+off\b)" "$file"; then return; fi
  done
  grep -HoE "\bmod(ule_|probe\.)blacklist=([^ ]*,)?${name}(,[^ ]*)?" /proc/cmdline
}

# modules_coming NAME prints the modules that are to be loaded for this one, each after those that it needs. What is built in is
# in the kernel already; modprobe says nothing of one that the host's owner loads with a command of their own.
modules_coming() {
  local how file module seen=
  while read -r how file _; do
    module=${file##*/}
    module=${module%%.ko*}
    module=${module//-/_}
    if [[ $module == "${1//-/_}" ]]; then seen=yes; fi
    if [[ $how == insmod && ! -d /sys/module/$module ]]; then printf '%s\n' "$module"; fi
  done < <(modprobe --show-depends -- "$1" 2>/dev/null)
  [[ -n $seen ]] || printf '%s\n' "${1//-/_}"
}

# unload_module NAME takes a module, and no other, out of the kernel; fails while something uses it.
unload_module() {
  local module=${1//-/_}
  [[ -d /sys/module/$module ]] || return 0
  if module_links "$module"; then return 1; fi
  rmmod -- "$module" 2>/dev/null || [[ ! -d /sys/module/$module ]]
}

# module_links NAME tells whether there are links of the module's: a bridge does not keep its module from being unloaded, and goes
# with it. Containers may have theirs in a network of their own. dummy makes one by itself where nobody told it not to.
module_links() {
  local space links
  for space in $(network_spaces); do
    links=$(nsenter --net="$space" ip -o link show type "$1" 2>/dev/null | grep -vE '^[0-9]+: dummy0: <[A-Z,]*NOARP>') || continue
    if [[ -n $links ]]; then return 0; fi
  done
  return 1
}

# network_spaces prints a path of each network namespace.
network_spaces() {
  { stat -L -c '%i %n' /proc/self/ns/net /proc/[0-9]*/ns/net /run/netns/* /run/docker/netns/* 2>/dev/null || true; } |
    awk '!seen[$1]++ { print $2 }'
}

# initramfs_build makes the initramfs of every kernel anew, where there are such.
initramfs_build() {
  command -v update-initramfs >/dev/null || return 0
  update-initramfs -u -k all 2>&1
}

# sysctl_get KEY prints a value with single blanks; fails where the kernel has no such key.
sysctl_get() {
  local value
  value=$(sysctl -n -e -- "$1" 2>/dev/null) && [[ -n $value ]] || return 1
  echo "${value//$'\t'/ }"
}

# sysctl_remembered KEY tells whether the ledger has the value that was there before kgpu.
sysctl_remembered() {
  local number
  for number in $(ledger_find sysctl); do
    if grep -q "^${1//./\\.}=" "$ledger/$number/args"; then return 0; fi
  done
  return 1
}

# remember_sysctls KEY... records values that another program is about to change. What is there after it did, in a step that is
# begun again say, is no such value.
remember_sysctls() {
  local key value
  local -a pairs=()
  for key in "$@"; do
    if sysctl_remembered "$key"; then continue; fi
    if value=$(sysctl_get "$key"); then pairs+=("$key=$value"); fi
    # The kernel changes the second with the first: it has to be put back after it.
    if [[ $key == net.ipv4.ip_forward ]]; then pairs+=("net.ipv4.conf.all.accept_redirects=$(sysctl_get net.ipv4.conf.all.accept_redirects)"); fi
  done
  [[ ${#pairs[@]} -eq 0 ]] || record sysctl "${pairs[@]}"
}

# apply_sysctls FILE sets the values of a sysctl.d file now.
apply_sysctls() {
  local key value old
  local -a keys=() pairs=()
  while IFS='=' read -r key value; do
    key=${key//[[:blank:]]/}
    [[ -n $key && $key != [\#\;]* ]] || continue
    key=${key#-}
    read -r value <<<"${value//$'\t'/ }"
    old=$(sysctl_get "$key") || fail HOST_MODULE_MISSING "the kernel has no sysctl $key"
    [[ $old != "$value" ]] || continue
    keys+=("$key")
    pairs+=("$key=$value")
  done <"$1"
  [[ ${#keys[@]} -gt 0 ]] || return 0
  remember_sysctls "${keys[@]}"
  sysctl -q -w -- "${pairs[@]}" || fail STEP_FAILED "sysctl refuses one of ${pairs[*]}"
}
