# shellcheck shell=bash
# File systems that are full. It needs no room itself: no here-strings, whose text goes through a file, and no files.

# What programs say when there is no room.
disk_words='no space left on device|not have enough free space|disk quota exceeded'

# Below this much, in KiB, a file system is full: the next package or layer is larger.
disk_tight=1024

# Where what kgpu runs writes to, and where else much of a disk goes.
disk_places=("$KGPU_STEP" / /etc /run /tmp /usr /var /var/cache/apt /var/lib/apt /var/lib/containerd /var/lib/docker /var/lib/dpkg /var/lib/etcd
  /var/lib/kubelet /var/log)
disk_users=(/boot /home /opt /root /srv /tmp /usr /var/cache/apt /var/lib/apt /var/lib/containerd /var/lib/docker /var/lib/etcd
  /var/lib/kgpu /var/lib/kgpu-tmp /var/lib/kubelet /var/lib/snapd /var/log /var/tmp)

# of_other_hosts says that this step tells what happens on other hosts: their disks are not this one's.
of_other_hosts() {
  : >"$KGPU_STEP/of-other-hosts"
}

# disk_verdict REASON DETAIL reads the events of a failed step, and prints a better reason and detail, separated by a tab, when
# the step had no room; fails when that was not it. A full file system counts without a word where the reason is a symptom.
disk_verdict() {
  local words='' mount
  if [[ ! -e $KGPU_STEP/of-other-hosts ]]; then
    words=$(sed -nE 's/^L\t[^\t]*\t//p' | grep -aiE "$disk_words" | tail -n 1 | sed -E 's#//[^/@ ]*@#//#g' | cut -c 1-300) || words=
    if [[ -z $words && $1 == HOST_DISK_FULL ]]; then words=$2; fi
  fi
  if [[ -n $words ]]; then
    mount=$(disk_full "$(disk_path "$words")") || mount=$(disk_full "${disk_places[@]}" "${disk_users[@]}") || mount=$(disk_least "$(disk_path "$words")")
  else
    case $1 in
      '' | STEP_FAILED | STEP_TIMEOUT | API_UNREACHABLE | NODE_NOT_READY) mount=$(disk_full "${disk_places[@]}") || return 1 ;;
      *) return 1 ;;
    esac
    words=$2
  fi
  disk_describe "$mount" "$words"
}

# disk_path WORDS prints the first path in the words, or as much of it as is there; nothing when there is none.
disk_path() {
  local path
  path=$(printf '%s\n' "$1" | grep -oE '/(boot|etc|home|opt|root|run|srv|tmp|usr|var)(/[A-Za-z0-9._+@:-]+)*' | head -n 1) || true
  path=${path%:}
  while [[ -n $path && ! -e $path ]]; do path=${path%/*}; done
  printf '%s' "$path"
}

# disk_df PATH... prints for the file system of each path: free KiB, free inodes, inodes in all, where it is mounted. Those of
# no size do not count: nobody writes there. Paths that are not there are left out.
disk_df() {
  { df -k --output=avail,iavail,itotal,size,target -- "$@" 2>/dev/null || true; } | awk 'NR > 1 && $4 > 0 { $4 = ""; print }'
}

# disk_full PATH... prints where the first file system of these that is full is mounted; fails when none is.
disk_full() {
  [[ -n $1 ]] || return 1
  disk_df "$@" | awk -v tight="$disk_tight" '!found && ($1 < tight || $3 > 0 && $2 == 0) { sub(/^[^\/]*/, ""); print; found = 1 } END { exit !found }'
}

# disk_least PATH prints where the file system of the path is mounted; without a path, the one with the least free.
disk_least() {
  local -a paths=("${disk_places[@]}" "${disk_users[@]}")
  if [[ -n $1 ]]; then paths=("$1"); fi
  disk_df "${paths[@]}" | sort -n | sed -n '1s#^[^/]*##p'
}

# disk_describe MOUNT WORDS prints reason and detail.
disk_describe() {
  local free ifree inodes size users
  read -r free ifree inodes size < <(df -k --output=avail,iavail,itotal,size -- "$1" | tail -n 1)
  if [[ $inodes -gt 0 && $ifree -eq 0 ]]; then
    printf 'HOST_INODES_FULL\t%s has none of its %s inodes free%s\n' "$1" "$inodes" "${2:+; $2}"
    return
  fi
  users=$(disk_biggest "$1")
  printf 'HOST_DISK_FULL\t%s has %s of %s free%s%s\n' "$1" "$(disk_human "$free")" "$(disk_human "$size")" "${users:+; most is in $users}" "${2:+; $2}"
}

disk_human() {
  numfmt --from-unit=1024 --to=iec-i --suffix=B "$1"
}

# disk_biggest MOUNT prints who has most on a file system, of the usual ones.
disk_biggest() {
  local device path
  device=$(stat -c %d -- "$1") || return 0
  for path in "${disk_users[@]}"; do
    if [[ $(stat -c %d -- "$path" 2>/dev/null) == "$device" ]]; then disk_user "$path" & fi
  done | sort -k 1,1 -rn | head -n 3 | cut -d ' ' -f 2- | paste -sd , | sed 's/,/, /g'
}

# disk_user PATH prints how much is there, in KiB, and both for people. What cannot be counted in time comes first.
disk_user() {
  local size status=0
  size=$(timeout 15 du -xsk -- "$1" 2>/dev/null) || status=$?
  if [[ $status == 124 ]]; then
    printf '%s %s (too many files to count)\n' 999999999999999 "$1"
    return
  fi
  size=${size%%[[:blank:]]*}
  printf '%s %s (%s)\n' "${size:-0}" "$1" "$(disk_human "${size:-0}")"
}
