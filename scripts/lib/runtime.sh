# shellcheck shell=bash
# What container runtimes make of their configuration, which others write, too. Of containerd's, files of others are imported
# beside kgpu's, and before containerd 2 the last one that has a section replaces that as a whole.
containerd_config=/etc/containerd/config.toml
containerd_dropins=/etc/containerd/conf.d
containerd_ours=$containerd_dropins/50-kgpu.toml

# containerd_settings prints those settings that kgpu needs of a configuration on standard input, a line each, by the names that
# they have in all versions of it. What a version does not know is not there.
containerd_settings() {
  awk '
    function word(text) { gsub(/[][" '\''\t]/, "", text); sub(/#.*/, "", text); return text }
    { key = $0; value = ""; if (at = index($0, "=")) { key = substr($0, 1, at - 1); value = word(substr($0, at + 1)) } key = word(key) }
    /^[ \t]*\[/ { name = key; next }
    name == "" && key == "disabled_plugins" && ("," value ",") ~ /,(cri|io\.containerd\.grpc\.v1\.cri|io\.containerd\.cri\.v1\.(runtime|images)),/ { print "disabled_plugins=" value }
    value == "" { next }
    name ~ /\.containerd\.runtimes\.runc\.options$/ && key == "SystemdCgroup" { print key "=" value }
    name ~ /\.cri(\.v1\.runtime)?\.cni$/ && (key == "bin_dir" || key == "bin_dirs") { print "bin_dir=" value }
    name ~ /\.grpc\.v1\.cri$/ && key == "sandbox_image" || name ~ /\.pinned_images$/ && key == "sandbox" { print "sandbox_image=" value }
    name ~ /\.(grpc\.v1\.cri|cri\.v1\.images)$/ && key == "image_pull_with_sync_fs" { print key "=" value }
    name ~ /\.(grpc\.v1\.cri|cri\.v1\.runtime)$/ && key == "enable_cdi" { print key "=" value }' | sort -u
}

# containerd_lacks CONFIG prints what containerd loads with this configuration instead of what kgpu set, if it does.
containerd_lacks() {
  local loaded key value have lacking=
  loaded=$(timeout 30 containerd --config "$1" config dump 2>"$KGPU_STEP/errors" | containerd_settings) ||
    fail STEP_FAILED "containerd cannot read its configuration: $(tail -n 1 "$KGPU_STEP/errors")"
  have=$(grep '^disabled_plugins=' <<<"$loaded") && lacking="disabled_plugins has ${have#*=}"
  while IFS='=' read -r key value; do
    have=$(grep -m 1 "^$key=" <<<"$loaded") || {
      # One that does not know CDI, or how to sync images, does neither; without the others there is no section of the CRI plugin as
      # kgpu has it.
      [[ $key != enable_cdi && $key != bin_dir && $key != image_pull_with_sync_fs ]] || continue
      have="$key=not set"
    }
    [[ ${have#*=} == "$value" ]] || lacking+="${lacking:+, }$key is ${have#*=}, not $value"
  done < <(containerd_settings <"$containerd_ours")
  printf '%s' "$lacking"
}

# started_by UNIT prints how systemd starts a unit, with its arguments, and drop_ins UNIT which files say so beside the unit's.
started_by() {
  unit_property "$1" ExecStart | sed -n 's/^.*argv\[\]=\([^;]*\);.*$/\1/p' | head -n 1
}
drop_ins() {
  local files
  files=$(unit_property "$1" DropInPaths)
  printf '%s' "${files:+ ($files)}"
}

# containerd_rules ends the step where something undoes what kgpu sets. The file to blame is the one without which it is loaded.
containerd_rules() {
  local lacking file try=$KGPU_STEP/containerd
  [[ -f $containerd_ours ]] || return 0
  if [[ " $(started_by containerd.service) " =~ \ (-c|--config)[=\ ]([^ ]+) && ${BASH_REMATCH[2]} != "$containerd_config" ]]; then
    fail HOST_RUNTIME_OVERRIDDEN "containerd.service reads ${BASH_REMATCH[2]}, not $containerd_config$(drop_ins containerd.service)"
  fi
  lacking=$(containerd_lacks "$containerd_config")
  [[ -n $lacking ]] || return 0
  for file in "$containerd_dropins"/*.toml; do
    [[ $file != "$containerd_ours" ]] || continue
    rm -rf "$try"
    mkdir -p "$try/conf.d"
    cp -- "$containerd_dropins"/*.toml "$try/conf.d"
    rm -- "$try/conf.d/${file##*/}"
    sed "s|$containerd_dropins/|$try/conf.d/|g" "$containerd_config" >"$try/config.toml"
    [[ -n $(containerd_lacks "$try/config.toml") ]] || fail HOST_RUNTIME_OVERRIDDEN "$file undoes settings of $containerd_ours: $lacking"
  done
  file=$(find "$containerd_dropins" -name '*.toml' ! -path "$containerd_ours" | sort | paste -sd ' ')
  fail HOST_RUNTIME_OVERRIDDEN "containerd does not load what $containerd_ours sets: $lacking; see imports in $containerd_config${file:+, and $file}"
}

# docker_rules FILE ends the step where docker's unit has it read another configuration than /etc/docker/daemon.json, or says
# itself what FILE, which is to be that, says: docker would not start. One that cannot check a configuration is trusted.
docker_rules() {
  local words
  local -a command
  read -r -a command <<<"$(started_by docker.service)"
  if [[ " ${command[*]} " =~ \ --config-file[=\ ]([^ ]+) && ${BASH_REMATCH[1]} != /etc/docker/daemon.json ]]; then
    fail HOST_RUNTIME_OVERRIDDEN "docker.service reads ${BASH_REMATCH[1]}, not /etc/docker/daemon.json$(drop_ins docker.service)"
  fi
  [[ ${command[0]:-} == */dockerd && -x ${command[0]} && -f $1 ]] || return 0
  words=$(timeout 30 "${command[@]}" --validate --config-file "$1" 2>&1) && return
  words=$(grep -m 1 'both as a flag and in the configuration file' <<<"$words") || return 0
  fail HOST_RUNTIME_OVERRIDDEN "docker.service$(drop_ins docker.service) and /etc/docker/daemon.json exclude each other: $words"
}

# images_synced CRI_SOCKET tells whether a runtime has what it unpacks of an image on the disk before the image counts as pulled. docker
# never has, and containerd where it is new enough (1.7.14).
images_synced() {
  [[ $1 == *containerd.sock ]] && timeout 30 containerd config dump 2>/dev/null | containerd_settings | grep -x image_pull_with_sync_fs=true >/dev/null
}
