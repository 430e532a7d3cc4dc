#!/usr/bin/env bash
# Keeps nouveau away from the cards, now if nothing uses it, else from the next boot on. Files: modprobe.d.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

if [[ -d /sys/module/nouveau ]]; then record_once unloaded nouveau; fi
# The initramfs has its own modprobe.d, and nouveau is often loaded from there.
if command -v update-initramfs >/dev/null; then record_once initramfs; fi
install_files
if ledger_has initramfs && { changed '/etc/modprobe.d/*' || ! ledger_has initramfs-built; }; then
  initramfs_build | tee "$KGPU_STEP/initramfs.log" || {
    if grep -q 'No space left' "$KGPU_STEP/initramfs.log"; then fail HOST_DISK_FULL 'there is no space in /boot for the initramfs'; fi
    fail STEP_FAILED 'update-initramfs failed'
  }
  record_once initramfs-built
fi
if [[ -d /sys/module/nouveau ]] && ! modprobe -r -- nouveau 2>&1; then
  echo 'nouveau is in use: it stays until the next boot'
fi
