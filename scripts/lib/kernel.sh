# shellcheck shell=bash
# Kernel modules and sysctls.

# load_module NAME... loads modules that are not in the kernel yet.
load_module() {
  local name
  for name in "$@"; do
    [[ ! -d /sys/module/${name//-/_} ]] || continue
    modprobe -n -q -- "$name" || fail HOST_MODULE_MISSING "kernel $(uname -r) has no module $name"
    record_once module "$name"
    modprobe -- "$name" || fail HOST_MODULE_MISSING "modprobe $name failed"
  done
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
