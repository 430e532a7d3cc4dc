#!/usr/bin/env bash
# Deletes tokens that workers joined with. Values: tokens (an ID a line; what follows a dot is not looked at).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t tokens < <(value_lines tokens)
secrets=()
for token in "${tokens[@]}"; do
  secrets+=("bootstrap-token-${token%%.*}")
done
[[ ${#secrets[@]} -eq 0 ]] || kube -n kube-system delete secrets --ignore-not-found "${secrets[@]}"
