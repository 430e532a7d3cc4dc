#!/usr/bin/env bash
# Installs what sets up the fabric of the cards, starts it, and waits until all cards have their place in it. Values: packages
# (a name a line: those of exactly the driver's version), others (the same, with versions of their own), modules (of the kernel,
# a line each: over them the switches are reached), unit, ends (yes: the unit may end by itself). Files: modules-load.d.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t packages < <(value_lines packages)
mapfile -t others < <(value_lines others)
mapfile -t modules < <(value_lines modules)
unit=$(value_or unit nvidia-fabricmanager.service)
ends=$(value_or ends no)
driver=$(nvidia_library) || fail GPU_DRIVER_MISSING 'the libraries of the driver are not installed'

# lacking prints what modprobe says of the first module that the kernel does not have.
lacking() {
  local module said
  for module in "${modules[@]}"; do
    [[ ! -d /sys/module/$module ]] || continue
    said=$(modprobe -n -- "$module" 2>&1) && continue
    printf '%s\n' "${said:-there is no module $module}"
    return
  done
}

# load_modules loads them. Ubuntu's kernels for clouds have them in a package of their own.
load_modules() {
  local extra lacks
  extra=linux-modules-extra-$(uname -r)
  lacks=$(lacking)
  if [[ -n $lacks ]]; then
    apt_offers "$extra" || apt_update
    apt_offers "$extra" || fail GPU_FABRIC_MISSING "$lacks; apt does not offer $extra"
    apt_install "$extra"
    lacks=$(lacking)
    [[ -z $lacks ]] || fail GPU_FABRIC_MISSING "$lacks; $extra is installed"
  fi
  load_module "${modules[@]}"
}

# want_others fails unless all of them are there or can be had.
want_others() {
  local package
  for package in "${others[@]}"; do
    if installed "$package" || apt_offers "$package"; then continue; fi
    apt_update
    apt_offers "$package" || fail GPU_FABRIC_MISSING "apt does not offer $package${apt_unanswered:+; $apt_unanswered}"
  done
}

# unit_says prints its last words.
unit_says() {
  journalctl -q --no-pager -n 15 -o cat -u "$unit" 2>/dev/null || true
}

# down ends the step where the unit does not run.
down() {
  unit_says >&2
  nvidia_said >&2
  fail GPU_FABRIC_FAILED "$unit $1: $(unit_says | tail -n 1)"
}

# started tells whether there is nothing to start.
started() {
  if [[ $ends == yes ]]; then systemctl is-enabled -q -- "$unit" 2>/dev/null; else unit_enabled "$unit"; fi
}

# wait_for_cards returns when all cards have their place.
wait_for_cards() {
  local waits told=
  while :; do
    nvidia_smi -q
    waits=$(nvidia_fabric_waits)
    [[ -n $waits ]] || return 0
    [[ $ends == yes ]] || unit_active "$unit" || down 'has ended'
    if [[ $(seconds_left) -le 0 ]]; then
      unit_says >&2
      fail GPU_FABRIC_INCOMPLETE "$waits; $unit says: $(unit_says | tail -n 1)"
    fi
    if [[ $waits != "$told" ]]; then waiting "the fabric of the cards: $waits"; fi
    told=$waits
    pause
  done
}

case $unit in
  nvidia-imex.service) claim_tree /var/log/nvidia-imex.log ;;
  *) claim_tree /run/nvidia-fabricmanager /var/log/fabricmanager.log ${others:+/var/log/nvlsm.log} ;;
esac
install_files
if [[ ${#modules[@]} -gt 0 ]]; then load_modules; fi
want_others
# Before the unit, which a package may start as it comes.
apt_install "${others[@]}"
apt_install_version "$driver" "${packages[@]}"
hold "${others[@]}" "${packages[@]}"
if ! started; then
  remember_unit "$unit"
  systemctl enable -q --now -- "$unit" || down 'does not start'
fi
wait_for_cards
