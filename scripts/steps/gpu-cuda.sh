#!/usr/bin/env bash
# Installs the CUDA toolkit, and cuDNN if it is among the packages. Values: packages (a line each), version (12.9).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

version=$(value version)
root=/usr/local/cuda-$version
mapfile -t packages < <(value_lines packages)

# The packages' links, for which update-alternatives takes away what others lead elsewhere, and the folders that programs
# write into.
for name in "cuda-$version" "cuda-${version%%.*}" cuda; do
  claim_tree "/usr/local/$name" "/etc/alternatives/$name" "/var/lib/dpkg/alternatives/$name"
  if [[ -L /usr/local/$name ]] && ! ledger_has tree "/usr/local/$name" && ! ledger_has file "/usr/local/$name"; then
    record_file "/usr/local/$name" ''
  fi
done
claim_dir /opt
claim_tree /opt/nvidia
# Gigabytes of packages are of no use once they are installed.
printf 'APT::Keep-Downloaded-Packages "false";\n' >"$KGPU_STEP/apt.conf"
APT_CONFIG=$KGPU_STEP/apt.conf apt_install "${packages[@]}"

[[ -x $root/bin/nvcc ]] || fail STEP_FAILED "${packages[*]} brought no $root/bin/nvcc"
said=$("$root/bin/nvcc" --version 2>&1) || fail STEP_FAILED "$root/bin/nvcc --version: $said"
printf '%s\n' "$said"
echo "CUDA $version is in $root: its programs are in /usr/local/cuda/bin, which is in nobody's PATH yet"
