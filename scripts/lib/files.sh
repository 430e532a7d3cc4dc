# shellcheck shell=bash
# Files and directories, recorded before they change.

# The paths that this step changed.
changed_files=()

# What a file will have is kept with the step's input until the ledger knows of the file: it may be secret, and goes as that does.
new_file=$KGPU_STEP/values/.new

# put_file PATH MODE writes standard input to PATH, owned by root. Content that is there already is only recorded.
put_file() {
  local path=$1 mode=$2 new=$new_file sum
  local -a modes
  umask 077
  [[ -d ${new%/*} ]] || mkdir -p "${new%/*}"
  cat >"$new"
  umask 022
  make_dir "${path%/*}"
  chmod "$mode" "$new"
  read -r sum _ < <(sha256sum "$new")
  if [[ -f $path && ! -L $path ]] && cmp -s "$new" "$path"; then
    mapfile -t modes < <(stat -c %a "$path" "$new")
    if [[ ${modes[0]} == "${modes[1]}" ]]; then
      rm -f "$new"
      ledger_has file "$path" || record_file "$path" "$sum"
      return
    fi
  fi
  record_file "$path" "$sum"
  outdate "$path"
  cp -p --remove-destination "$new" "$path.kgpu-new"
  rm -f "$new"
  sync -d "$path.kgpu-new"
  mv -f "$path.kgpu-new" "$path"
  changed_files+=("$path")
}

# record_file PATH SUM remembers PATH as it is; SUM is of the content that comes now.
record_file() {
  entry_begin file "$1" "$2"
  if [[ -e $1 || -L $1 ]]; then cp -a "$1" "$entry/before/file"; fi
  entry_commit
}

# install_files writes every file that came with the step, with the mode it came with.
install_files() {
  [[ -d $KGPU_STEP/files ]] || return 0
  local mode path
  while IFS=' ' read -r mode path; do
    put_file "/$path" "$mode" <"$KGPU_STEP/files/$path"
  done < <(find "$KGPU_STEP/files" -type f -printf '%m %P\n' | sort -k 2)
}

# changed PATTERN... tells whether this step changed a file that matches one of the patterns.
changed() {
  local path pattern
  for path in "${changed_files[@]}"; do
    for pattern in "$@"; do
      # shellcheck disable=SC2053 # the right side is meant as a pattern
      [[ $path != $pattern ]] || return 0
    done
  done
  return 1
}

# make_dir PATH makes a directory and those above it; undo removes the new ones when they are empty.
make_dir() {
  [[ ! -d ${1:-/} ]] || return 0
  make_dir "${1%/*}"
  record dir "$1"
  mkdir -m 755 "$1"
}

# claim_tree PATH... remembers which of these are not there: whatever a program puts there later goes at undo.
claim_tree() {
  local path
  for path in "$@"; do
    [[ -e $path || -L $path ]] || record_once tree "$path"
  done
}

# claim_dir PATH... does so for directories that others may use too: undo removes them when they are empty.
claim_dir() {
  local path
  for path in "$@"; do
    [[ -e $path ]] || record_once dir "$path"
  done
}

# claim_group NAME... and claim_user NAME... do the same for what packages add to the system's accounts.
claim_group() {
  local name
  for name in "$@"; do
    getent group "$name" >/dev/null || record_once group "$name"
  done
}

claim_user() {
  local name
  for name in "$@"; do
    getent passwd "$name" >/dev/null || record_once user "$name"
  done
}

# remember_images CRI_SOCKET records, before a cluster's come, which images the kubelet had in a containerd that was there before
# kgpu. Others' are in other namespaces.
remember_images() {
  if [[ $1 != *containerd.sock ]] || ledger_has tree /var/lib/containerd || ledger_has images; then return; fi
  command -v ctr >/dev/null || return 0
  entry_begin images
  kubelet_images >"$entry/before/images" || fail STEP_FAILED 'containerd does not list its images: ctr -n k8s.io images list'
  entry_commit
}

kubelet_images() {
  timeout 60 ctr -n k8s.io images list -q
}

# claim_containers does so for what container runtimes and their packages put somewhere or start.
claim_containers() {
  claim_dir /opt
  claim_tree /var/lib/containerd /etc/containerd /opt/containerd /run/containerd /run/nri /etc/cni /opt/cni /var/lib/cni
  claim_dir /run/netns
  remember_unit network-online.target
}
