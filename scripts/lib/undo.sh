# shellcheck shell=bash
# Undo: the ledger played backwards. An entry goes when its change is undone and that is on the disk, so undo can be killed, or the
# host lose power, and it is run again.

undo_incomplete=() # what had to stay, as far as this process knows
undo_notes=''      # a directory that has it, too: a file for each part of the work
undo_part=''       # the file of the part that is at work

# undo_all undoes every entry and says what had to stay: in the log, in the journal, which remains, and in its output called
# left.
undo_all() {
  local number kind sum stays
  undo_reload=
  # What mends a broken dpkg on the way makes new entries.
  while number=$(ledger_last) && [[ -n $number ]]; do
    read -r kind <"$ledger/$number/kind"
    sum=$(cksum <"$ledger/$number/args")
    undo_begin "$number-$kind-${sum%% *}" # numbers come again
    undo_entry "$number"
  done
  undo_daemon_reload
  undo_restarts
  stays=$(undo_stays)
  [[ -n $stays ]] || return 0
  printf '%s\n' "$stays" | sed 's/^/not undone: /'
  printf '%s\n' "$stays" | sed 's/^/kgpu reset: not taken back: /' | logger -t kgpu 2>/dev/null || true
  printf '%s\n' "$stays" | output left
}

# undo_notes_in DIRECTORY keeps what has to stay there, for an undo that comes after one that was killed: the entries that
# would tell again are gone by then.
undo_notes_in() {
  if (umask 077 && mkdir -p "$1"); then undo_notes=$1; fi
}

# undo_begin PART begins a part of the work, perhaps once more: what was noted of it does not count any longer.
undo_begin() {
  undo_part=$1
  [[ -z $undo_notes ]] || rm -f "$undo_notes/$1"
}

# undo_left WHAT [until-boot] remembers something that stays as it is.
undo_left() {
  undo_incomplete+=("$1")
  if [[ -n $undo_notes && ${2:-} != until-boot ]]; then
    { printf '%s\n' "$1" >>"$undo_notes/$undo_part" && sync -d "$undo_notes/$undo_part" "$undo_notes"; } || true # a full disk is no reason to leave more
  fi
}

# undo_stays prints what had to stay.
undo_stays() {
  {
    [[ -z $undo_notes ]] || find "$undo_notes" -type f | sort -r | xargs -r cat
    [[ ${#undo_incomplete[@]} -eq 0 ]] || printf '%s\n' "${undo_incomplete[@]}"
  } | awk '!told[$0]++'
}

undo_entry() {
  local kind before=$ledger/$1/before
  local -a args
  kind=$(<"$ledger/$1/kind")
  mapfile -t args <"$ledger/$1/args"
  case $kind in
    file) undo_file "${args[@]}" ;;
    dir) rmdir "${args[0]}" 2>/dev/null || [[ ! -e ${args[0]} ]] || undo_left "${args[0]} is not empty" ;;
    tree) undo_tree "${args[0]}" ;;
    backups) undo_backups "${args[@]}" ;;
    group) undo_account group "${args[0]}" ;;
    user) undo_account passwd "${args[0]}" ;;
    lists) rm -f /var/lib/apt/lists/"${args[0]}"* /var/lib/apt/lists/{partial,auxfiles}/"${args[0]}"* ;;
    packages) undo_packages "${args[@]}" ;;
    removed) undo_removed "${args[@]}" ;;
    hold) undo_hold "${args[0]}" ;;
    unit) undo_unit "${args[@]}" ;;
    module) unload_module "${args[0]}" || undo_left "module ${args[0]} is in use: it stays until the next boot" until-boot ;;
    unloaded) modprobe -q -- "${args[0]}" || undo_left "module ${args[0]} does not load again" ;;
    nvidia) undo_nvidia ;;
    initramfs) initramfs_build || undo_left 'the initramfs still has what kgpu put into modprobe.d' ;;
    sysctl) undo_sysctl "${args[@]}" ;;
    fstab-swap)
      rm -f /etc/fstab.kgpu-new
      fstab_swap_on
      undo_reload=yes
      ;;
    swap) undo_swap "${args[@]}" ;;
    virtual-ip)
      ip address delete "${args[0]}/32" dev "${args[1]}" 2>/dev/null || true # of a keepalived that was killed
      rm -f "$api_restarts"
      ;;
    api-name) hosts_forget "${args[0]}" ;;
    docker-network) undo_docker_network "${args[@]}" ;;
    images) undo_images ;;
    cni-mute) rm -f /etc/cni/net.d/00-kgpu-leave.conflist ;;
    kubeadm | adopted | initramfs-built) ;;
    *) fail STEP_FAILED "the ledger has an entry of the unknown kind $kind" ;;
  esac
  drop_unfinished
  entry_drop "$1"
}

# undo_entries KIND ARG... undoes the entries of this kind whose first arguments are these, the newest first.
undo_entries() {
  local number
  for number in $(ledger_find "$@" | sort -r); do undo_entry "$number"; done
}

# undo_backups DIRECTORY NODE made|found takes kgpu's marks from the directory of a control plane's backups. Archives stay: they may be
# all that is left of the cluster. A share whose server is away keeps its marks.
undo_backups() {
  rm -rf /var/lib/kgpu/scheduled
  timeout 20 rm -f "$1/.kgpu-backups-$2" "$1/.kgpu-backup-$2.part" || true
  if [[ $3 == made ]] && rmdir "$1" 2>/dev/null; then return; fi
  if [[ -n $(timeout 20 find "$1" -maxdepth 1 -name 'kgpu-backup-*' -print -quit 2>/dev/null) ]]; then
    undo_left "the backups in $1: they are as secret as the cluster was"
  fi
}

# undo_file PATH SUM puts back what was there, unless somebody edited the file since.
undo_file() {
  local path=$1 sum=''
  rm -f "$path.kgpu-new"
  if [[ -f $path ]]; then read -r sum _ < <(sha256sum "$path"); fi
  if [[ -e $before/file || -L $before/file ]]; then
    if [[ -f $path && $sum != "$2" ]]; then
      cmp -s "$before/file" "$path" || undo_left "$path was edited since kgpu wrote it"
      return
    fi
    make_way "${path%/*}"
    cmp -s "$before/file" "$path" || undo_outdates "$path"
    put_back "$before/file" "$path"
  elif [[ -n $sum && $sum != "$2" ]]; then
    undo_left "$path was edited since kgpu wrote it"
  else
    [[ -z $sum ]] || undo_outdates "$path"
    rm -f "$path"
  fi
  if [[ $path == /etc/systemd/system/* ]]; then undo_reload=yes; fi
}

undo_outdates() {
  (outdate "$1") || rm -f "$KGPU_STEP/failure" # a full disk keeps nothing from going back
}

# undo_restarts has the owner's docker and containerd, which go on, read the settings that are back: docker would look for a runtime
# that is gone, for each container. It is for its owner to say when containers end.
undo_restarts() {
  local unit
  undo_begin restarts
  for unit in containerd.service docker.service; do
    unit_outdated "$unit" || continue
    if docker_would_end; then
      undo_left "$unit runs with kgpu's settings until it is restarted: containers of docker's would end with that" until-boot
      continue
    fi
    unit_anew "$unit" || undo_left "$unit does not start"
    rm -f "$outdated/$unit"
  done
}

# docker_would_end tells whether containers would end with docker: one that runs has a process of containerd's beside it, in the
# host's network. A unit of docker's may end with that of containerd, whose own containers go on.
docker_would_end() {
  local process
  local -a words
  if grep -qsE '"live-restore"[[:space:]]*:[[:space:]]*true' /etc/docker/daemon.json; then return 1; fi
  for process in /proc/[0-9]*; do
    { mapfile -d '' -t words <"$process/cmdline"; } 2>/dev/null || continue
    if [[ ${words[0]:-} == *containerd-shim* && " ${words[*]} " == *' moby '* ]] && in_own_network "$process"; then return 0; fi
  done
  return 1
}

# put_back COPY PATH gives PATH what the ledger kept of it. Its content is on the disk before its name is: after a power cut, half
# a file would be taken for one that somebody edited.
put_back() {
  rm -f "$2.kgpu-new"
  cp -a "$1" "$2.kgpu-new"
  [[ -L $2.kgpu-new ]] || sync -d "$2.kgpu-new"
  mv -fT "$2.kgpu-new" "$2"
}

make_way() {
  [[ -d $1 ]] || mkdir -p "$1"
}

undo_tree() {
  if [[ $1 == /var/lib/dkms || $1 == /var/lib/shim-signed* ]] && installed dkms; then
    undo_left "$1: dkms is installed for modules that kgpu did not bring"
    return
  fi
  unmount_below "$1"
  rm -rf --one-file-system -- "$1" || undo_left "$1 cannot be removed"
}

undo_account() {
  getent "$1" "$2" >/dev/null || return 0
  if [[ $1 == group ]]; then groupdel "$2"; else userdel "$2"; fi || undo_left "the $1 entry $2 cannot be removed"
}

# undo_packages NAME... purges the packages that came; one that something else needs by now stays. Of one that kgpu brought before it
# upgraded it, nothing is left.
undo_packages() {
  local package versions
  if [[ -f $before/upgraded ]]; then
    while read -r package versions; do
      came_with_kgpu "$package" || undo_left "the upgrade of $package $versions"
    done <"$before/upgraded"
  fi
  undo_packages_away "$@"
  undo_kept
}

undo_packages_away() {
  local package how
  local -a gone=() purged=() removed=()
  for package in "$@"; do
    how=purge
    if is_kernel "$package"; then
      if installed "$package"; then undo_left "package $package: it is the newest kernel, or of it"; fi
      continue
    fi
    if was_kept "$package"; then how=remove; fi
    case $how-$(package_fields "$package" db:Status-Status) in
      *- | *-not-installed | remove-config-files) ;;
      *-half-installed) when_free dpkg_drop_torn "$how" "$package" || gone+=("$package") ;;
      *) gone+=("$package") ;;
    esac
  done
  [[ ${#gone[@]} -gt 0 ]] || return 0
  undo_daemon_reload
  undo_packages_wanted
  [[ ${#gone[@]} -gt 0 ]] || return 0
  undo_package_units "${gone[@]}"
  undo_packages_keep "${gone[@]}"
  for package in "${gone[@]}"; do
    if was_kept "$package"; then removed+=("$package"); else purged+=("$package"); fi
  done
  if [[ ${#removed[@]} -gt 0 ]]; then # with those that need them and are purged next
    apt_get remove --allow-change-held-packages "${removed[@]}" || apt_failed "removing ${removed[*]}"
  fi
  if [[ ${#purged[@]} -gt 0 ]]; then
    apt_get purge --allow-change-held-packages "${purged[@]}" || apt_failed "purging ${purged[*]}"
  fi
  [[ -d /opt ]] || mkdir -m 755 /opt # dpkg removes it when it gets empty
}

# is_kernel PACKAGE tells whether it is a part of a kernel. No host is left without the one that it runs, or boots next.
is_kernel() {
  [[ $1 =~ ^linux-(image|modules|modules-extra)-[0-9] ]]
}

# undo_packages_keep keeps the purge of docker.io from removing a /var/lib/docker that was there before kgpu.
undo_packages_keep() {
  if [[ " $* " == *' docker.io '* ]] && ! ledger_has tree /var/lib/docker; then rm -f /var/lib/docker/nuke-graph-directory.sh; fi
}

# undo_package_units disables the units of packages: not every package does it when it goes.
undo_package_units() {
  local unit
  while IFS= read -r unit; do
    systemctl disable -q --now -- "$unit" 2>/dev/null || true
    systemctl reset-failed -- "$unit" 2>/dev/null || true
  done < <(package_units "$@")
}

# undo_packages_wanted takes those out of gone that cannot go without packages which kgpu did not install.
undo_packages_wanted() {
  local package others
  local -a free=()
  others=$(undo_packages_others "${gone[@]}")
  [[ -n $others ]] || return 0
  for package in "${gone[@]}"; do
    others=$(undo_packages_others "$package")
    if [[ -z $others ]]; then free+=("$package"); else undo_left "package $package, needed by $others"; fi
  done
  gone=("${free[@]}")
}

# undo_packages_others NAME... prints the packages outside of gone that would go with these.
undo_packages_others() {
  local word package
  apt_wait
  apt-get -s -q --allow-change-held-packages purge "$@" >"$apt_log" 2>&1 || apt_failed "purging $*"
  while read -r word package _; do
    [[ $word == Purg || $word == Remv ]] || continue
    [[ " ${gone[*]} " == *" $package "* ]] || printf '%s ' "$package"
  done <"$apt_log"
}

undo_hold() {
  if installed "$1"; then apt_mark unhold "$1"; fi
}

# undo_unit NAME LOAD ACTIVE ENABLED brings a unit back to what it was. One whose file is gone by now has no state to have: it
# went with the package that kgpu brought, or its owner removed it.
undo_unit() {
  local unit=$1 load=$2 active=$3 enabled=$4
  undo_daemon_reload
  if [[ $enabled != masked && $(unit_property "$unit" UnitFileState) == masked ]]; then systemctl unmask -q -- "$unit"; fi
  if [[ $load != loaded && $load != masked || $enabled != masked && $(unit_property "$unit" LoadState) == not-found ]]; then
    systemctl disable -q --now -- "$unit" 2>/dev/null || true
    systemctl reset-failed -- "$unit" 2>/dev/null || true
    return
  fi
  case $enabled in
    enabled) systemctl enable -q -- "$unit" ;;
    disabled) systemctl disable -q -- "$unit" ;;
    masked) systemctl mask -q -- "$unit" ;;
  esac || undo_left "$unit cannot be made $enabled again"
  if [[ $active == active ]]; then
    systemctl start -- "$unit" || undo_left "$unit does not start"
  else
    systemctl stop -- "$unit" 2>/dev/null || true
    systemctl reset-failed -- "$unit" 2>/dev/null || true
  fi
}

# undo_daemon_reload tells systemd of unit files that changed, once.
undo_daemon_reload() {
  [[ -n ${undo_reload:-} ]] || return 0
  systemctl daemon-reload
  undo_reload=
}

# undo_nvidia takes the driver that kgpu brought out of the kernel, before its packages go.
undo_nvidia() {
  nvidia_away || undo_left "the driver's modules, in use by: $(nvidia_users); they stay until the next boot" until-boot
}

# undo_sysctl KEY=VALUE... sets the values that were there; a key that went with its module is no matter.
undo_sysctl() {
  local pair now
  for pair in "$@"; do
    if ! now=$(sysctl_get "${pair%%=*}") || [[ $now == "${pair#*=}" ]]; then continue; fi
    sysctl -q -w -- "$pair" || undo_left "sysctl $pair is refused"
  done
}

# undo_swap NAME PRIORITY turns a swap space on again; units that make swap were started before.
undo_swap() {
  grep -qF "$1 " /proc/swaps && return
  if [[ -e $1 ]]; then swapon -p "$2" -- "$1" 2>/dev/null || swapon -- "$1" || undo_left "swap on $1"; fi
}

# undo_images removes those that came for the kubelet since, unless a cluster is here that stays.
undo_images() {
  local now
  local -a came
  [[ -z $(cluster_ca) ]] || return 0
  if now=$(kubelet_images); then
    [[ -n $now ]] || return 0
    mapfile -t came < <(grep -vxFf "$before/images" <<<"$now")
    [[ ${#came[@]} -gt 0 ]] || return 0
    if timeout 120 ctr -n k8s.io images rm --sync "${came[@]}" >/dev/null; then return; fi
  fi
  undo_left 'images of the cluster in containerd: ctr -n k8s.io images list'
}

# undo_docker_network TOOL=POLICY... removes what a stopped docker leaves, and puts the FORWARD policies back.
undo_docker_network() {
  local pair
  rules_drop "$docker_chains" "$docker_rules"
  for pair in "$@"; do
    "${pair%=*}" -w 10 -P FORWARD "${pair#*=}" || undo_left "the FORWARD policy $pair"
  done
  if [[ -e /sys/class/net/docker0 ]]; then ip link delete docker0 || undo_left 'the link docker0'; fi
}
