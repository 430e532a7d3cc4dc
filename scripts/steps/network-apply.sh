#!/usr/bin/env bash
# Applies the pod network; cluster-ready waits for it. Values: manifest, or url and sha256.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

manifest=$KGPU_STEP/values/manifest
if [[ ! -f $manifest ]]; then
  manifest=$KGPU_STEP/manifest.yaml
  fetch "$(value url)" "$manifest" "$(value sha256)"
fi
wait_api
# A definition and an object of its kind may come in one manifest: the next try finds the new kind.
kube_apply "$manifest" ||
  fail_transient STEP_FAILED 'the API server refuses the manifest'
