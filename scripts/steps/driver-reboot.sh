#!/usr/bin/env bash
# Reboots the host, once. Values: boot_id (of the boot that is to end), reason (what for), stale (yes: only if the driver
# in the kernel is not the one that is installed, and cannot be unloaded, or the one that is installed is for another kernel),
# force (yes: units are not waited for, as those that use a driver that hangs do not stop).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# kubelet_settles returns when the kubelet has run for some seconds, or will not: at boot it ends and begins again until the
# container runtime answers, and who looks meanwhile sees a host that is not well.
kubelet_settles() {
  local steady=0 tries
  for ((tries = 0; tries < 120 && steady < 3; tries++)); do
    if [[ $tries == 1 ]]; then waiting 'the kubelet'; fi
    if unit_active kubelet.service; then steady=$((steady + 1)); else steady=0; fi
    sleep 1
  done
}

# other_kernel tells whether the driver was installed for another kernel than the one that runs.
other_kernel() {
  nvidia_library >/dev/null && ! nvidia_module_file >/dev/null
}

if [[ $(</proc/sys/kernel/random/boot_id) != "$(value boot_id)" ]]; then
  echo 'the host was rebooted'
  if [[ -e /etc/kubernetes/kubelet.conf ]]; then kubelet_settles; fi
  if [[ $(value_or stale no) == yes ]] && other_kernel; then
    fail GPU_KERNEL_NOT_BOOTED "after the reboot the host runs kernel $(uname -r), for which the driver has no modules"
  fi
  exit 0
fi
reason=$(value reason)
if [[ $(value_or stale no) == yes ]]; then
  if other_kernel; then
    reason="the driver is for another kernel than the one that runs, $(uname -r)"
  elif ! loaded=$(nvidia_loaded) || [[ $loaded == "$(nvidia_library || true)" ]] || nvidia_away; then
    echo 'the old modules are gone: no reboot'
    exit 0
  else
    users=$(nvidia_users)
    reason+=${users:+ by: $users}
  fi
fi
waiting "the reboot: $reason"
sync
how=()
if [[ $(value_or force no) == yes ]]; then how=(--force); fi
systemctl reboot "${how[@]}" || fail STEP_FAILED 'the host refuses to reboot'
# The step ends with this boot. The runner begins it again in the next one.
while :; do
  [[ $(seconds_left) -gt 0 ]] || fail STEP_TIMEOUT 'systemctl reboot did not end this boot'
  sleep 1
done
