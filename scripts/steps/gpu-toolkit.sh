#!/usr/bin/env bash
# Installs NVIDIA's container toolkit, describes the cards for containers (CDI) and gives the container runtime the
# runtime called nvidia. Values: packages (name=version, a line each), runtime (containerd or docker), settings (of the
# toolkit: name=value, a line each). Files: the runtime's configuration.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t packages < <(value_lines packages)
mapfile -t settings < <(value_lines settings)
runtime=$(value runtime)
spec=/var/run/cdi/nvidia.yaml

# configure sets the toolkit's settings; the rest of its file stays.
configure() {
  local file=/etc/nvidia-container-runtime/config.toml setting
  local -a options=()
  for setting in "${settings[@]}"; do options+=(--set "$setting"); done
  [[ ${#options[@]} -gt 0 ]] || return 0
  nvidia-ctk config --config-file="$file" "${options[@]}" >"$KGPU_STEP/config.toml" || fail STEP_FAILED "nvidia-ctk cannot set ${settings[*]}"
  put_file "$file" 644 <"$KGPU_STEP/config.toml"
}

# spec_current tells whether the description is of the driver that is there.
spec_current() {
  grep -qF ".so.$driver" "$spec" 2>/dev/null
}

# describe_cards has the toolkit's own units keep the description current: the next boot and the next driver need a new
# one. Where they leave nothing it is made here.
describe_cards() {
  local unit status=0
  driver=$(nvidia_library) || fail GPU_DRIVER_MISSING 'the libraries of the driver are not installed'
  for unit in nvidia-cdi-refresh.path nvidia-cdi-refresh.service; do
    [[ $(unit_property "$unit" LoadState) == loaded ]] || continue
    remember_unit "$unit"
    systemctl enable -q -- "$unit"
    timeout -k 5 90 systemctl start -- "$unit" || echo "$unit does not start"
  done
  spec_current && return
  timeout -k 5 90 nvidia-ctk cdi generate --output="$spec" 2>&1 || status=$?
  if [[ $status == 124 || $status == 137 ]]; then fail GPU_HUNG 'nvidia-ctk does not get to know the cards'; fi
  [[ $status == 0 ]] || fail STEP_FAILED "nvidia-ctk cdi generate ended with status $status"
  spec_current || fail GPU_DRIVER_MISMATCH "$spec does not name the libraries of driver $driver"
}

# knows_nvidia tells whether the running runtime has a runtime called nvidia; one that cannot be asked is trusted.
knows_nvidia() {
  local info
  if [[ $runtime == docker ]]; then
    info=$(curl -fsS --max-time 60 --unix-socket /run/docker.sock http://localhost/info) || fail STEP_FAILED 'docker does not answer'
  else
    info=$(timeout 20 crictl --runtime-endpoint unix:///run/containerd/containerd.sock info 2>/dev/null) || return 0
  fi
  [[ $info =~ \"nvidia\":\ *\{ ]]
}

# containerd_setting SECTION KEY prints a setting of what containerd reads; a section is named by how its name ends.
containerd_setting() {
  awk -v section="$1" -v key="$2" '
    /^ *\[/ { name = $0; gsub(/[][" '\'']/, "", name); inside = substr(name, length(name) - length(section) + 1) == section; next }
    inside && $1 == key && $2 == "=" { print $3; exit }' <<<"$dump"
}

# verify_containerd fails unless runc and nvidia are run alike, and cards can be had by CDI.
verify_containerd() {
  local dump ours
  dump=$(containerd config dump)
  [[ -n $(containerd_setting .containerd.runtimes.nvidia runtime_type) ]] ||
    fail GPU_RUNTIME_MISSING 'containerd has no runtime called nvidia: is /etc/containerd/conf.d imported?'
  ours=$(containerd_setting .containerd.runtimes.nvidia.options SystemdCgroup)
  [[ $ours == "$(containerd_setting .containerd.runtimes.runc.options SystemdCgroup)" ]] ||
    fail GPU_RUNTIME_MISSING "the runtimes runc and nvidia of containerd differ in SystemdCgroup, which is ${ours:-not set} for nvidia"
  # Versions that do not know the setting cannot do it, or cannot help doing it.
  if [[ $(containerd_setting .cri enable_cdi)$(containerd_setting .cri.v1.runtime enable_cdi) == false ]]; then
    fail GPU_RUNTIME_MISSING 'containerd has CDI turned off'
  fi
}

# What the device plugin's pod writes to the host: a description beside ours, what it finds out about the cards, and what
# processes share by MPS.
claim_dir /etc/cdi /run/cdi /etc/kubernetes/node-feature-discovery /etc/kubernetes/node-feature-discovery/features.d /run/nvidia
claim_tree /etc/kubernetes/node-feature-discovery/features.d/gfd /run/nvidia/mps
claim_tree /etc/nvidia-container-runtime /run/cdi/nvidia.yaml /run/cdi/k8s.device-plugin.nvidia.com-gpu.json /etc/cdi/nvidia.yaml
apt_install "${packages[@]}"
hold "${packages[@]%%=*}"
describe_cards
# By its settings the next run knows that a step came so far.
configure
# Not before all that it names is there: docker, beginning after a power cut, could start nothing.
if [[ $runtime == docker ]]; then docker_rules "$KGPU_STEP/files/etc/docker/daemon.json"; fi
install_files
if [[ $runtime == containerd ]]; then containerd_rules; fi
if changed '/etc/containerd/*' '/etc/docker/*' || unit_outdated "$runtime.service" || ! knows_nvidia; then runtime_restart "$runtime"; fi
knows_nvidia || fail GPU_RUNTIME_MISSING "$runtime has no runtime called nvidia"
if [[ $runtime == containerd ]]; then verify_containerd; fi
