# shellcheck shell=bash
# systemd units. The first state that kgpu met is remembered, later ones are its own.

unit_property() {
  systemctl show --value -p "$2" -- "$1"
}

unit_active() {
  systemctl is-active -q -- "$1"
}

remember_unit() {
  local load='' active='' enabled
  ledger_has unit "$1" && return
  # A state that nobody told would be what reset brings the unit back to.
  if ! { load=$(unit_property "$1" LoadState) && active=$(unit_property "$1" ActiveState) && enabled=$(unit_property "$1" UnitFileState); } ||
    [[ -z $load || -z $active ]]; then
    fail_transient STEP_FAILED "systemd does not tell how $1 is"
  fi
  record unit "$1" "$load" "$active" "$enabled"
}

# unit_enabled tells whether a unit runs and will run after the next boot.
unit_enabled() {
  unit_active "$1" && systemctl is-enabled -q -- "$1" 2>/dev/null
}

# unit_coming tells whether a unit is about to run by itself, as after a boot.
unit_coming() {
  [[ $(unit_property "$1" ActiveState) == activating || $(unit_property "$1" Job) -gt 0 ]] && systemctl is-enabled -q -- "$1" 2>/dev/null
}

# unit_brought UNIT tells whether a unit came with a package that kgpu brought.
unit_brought() {
  local -a packages
  mapfile -t packages < <(packages_of_kgpu)
  [[ ${#packages[@]} -gt 0 ]] && grep -qxF -- "$1" <<<"$(package_units "${packages[@]}")"
}

# unit_enable UNIT... enables units and starts them. One that comes by itself is only waited for: kgpu changes nothing of it. One that
# kgpu brought goes with its package, and has no state to go back to; a package whose script is cut off may not have enabled it.
unit_enable() {
  local unit
  for unit in "$@"; do
    if unit_enabled "$unit"; then continue; fi
    unit_coming "$unit" || unit_brought "$unit" || remember_unit "$unit"
    systemctl enable -q --now -- "$unit" || unit_failed "$unit"
  done
}

# unit_at_boot UNIT... has units start at every boot, by their files alone. Asked by its bus to do it, systemd 255 and newer says of each of its
# units that it changed on disk, until it is reloaded; and a reload takes the cards from containers that have them by the old way.
# Source: systemctl(1), --root; unit_file_state_outdated in src/core/manager.h of systemd.
unit_at_boot() {
  systemctl enable -q --root=/ -- "$@"
}

# Units that are owed a restart: a file for each, which names that run of the unit. It outlives the step, which may be killed before
# it restarts the unit and finds nothing to change when it begins again.
outdated=/var/lib/kgpu/outdated

# outdate PATH notes, before the file changes, that the unit which read it is owed a restart.
outdate() {
  local unit=${1#/etc/systemd/system/}
  case $1 in
    /etc/docker/*) unit=docker.service ;;
    /etc/containerd/*) unit=containerd.service ;;
    /usr/local/bin/cri-dockerd | /etc/systemd/system/cri-docker.socket) unit=cri-docker.service ;;
    /etc/systemd/system/*.service.d/* | /etc/systemd/system/*.service) unit=${unit%%.d/*} ;;
    *) return 0 ;;
  esac
  owe_restart "$unit"
}

# owe_restart UNIT notes that a unit, if it runs, is owed a restart.
owe_restart() {
  unit_active "$1" || return 0
  (umask 077 && mkdir -p "$outdated")
  unit_property "$1" InvocationID >"$outdated/$1" || fail_transient STEP_FAILED "systemd does not tell how $1 is"
}

# unit_outdated UNIT tells whether a unit that runs is owed a restart.
unit_outdated() {
  [[ -f $outdated/$1 ]] && unit_active "$1" && [[ $(unit_property "$1" InvocationID) == "$(<"$outdated/$1")" ]]
}

# units_reload UNIT... has systemd read the files of units that changed since it did.
units_reload() {
  local unit
  for unit in "$@"; do
    if [[ $(unit_property "$unit" NeedDaemonReload) == yes ]]; then
      systemctl daemon-reload
      return
    fi
  done
}

# unit_restart UNIT... restarts units.
unit_restart() {
  local unit
  for unit in "$@"; do
    remember_unit "$unit"
    unit_anew "$unit" || unit_failed "$unit"
    rm -f "$outdated/$unit"
  done
}

# runtime_restart docker|containerd restarts a container runtime, and cri-dockerd, which gives up while docker restarts.
runtime_restart() {
  if [[ $1 == docker ]]; then owe_restart cri-docker.service; fi
  unit_restart "$1.service"
  if [[ $1 == docker ]] && unit_active cri-docker.socket; then unit_restart cri-docker.service; fi
}

# unit_anew UNIT restarts a unit, however often it failed before.
unit_anew() {
  systemctl reset-failed -- "$1" 2>/dev/null || true
  systemctl restart -- "$1"
}

# unit_off UNIT... stops units and keeps them from coming back.
unit_off() {
  local unit
  for unit in "$@"; do
    remember_unit "$unit"
    if [[ $(unit_property "$unit" FragmentPath) == /etc/systemd/system/* ]]; then
      systemctl disable -q --now -- "$unit"
    else
      systemctl mask -q --now -- "$unit"
    fi
  done
}

unit_failed() {
  journalctl -q --no-pager -n 15 -o cat -u "$1" >&2 || true
  fail STEP_FAILED "$1 does not start"
}
