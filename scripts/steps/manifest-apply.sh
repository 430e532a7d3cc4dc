#!/usr/bin/env bash
# Applies a manifest; cluster-ready, gpu-ready and the proof wait for what it makes. Values: manifest; or url and sha256, and what
# is set in the workload (namespace/kind/name) of that manifest: environment (NAME=VALUE, unless the manifest says NAME itself) and
# hash; prove (yes: the network is to be proven).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

manifest=$KGPU_STEP/values/manifest
if [[ ! -f $manifest ]]; then
  manifest=$KGPU_STEP/manifest.yaml
  fetch "$(value url)" "$manifest" "$(value sha256)"
fi
if [[ $(value_or prove no) == yes ]]; then network_unproven; fi
wait_api
# A definition and an object of its kind may come in one manifest: the next try finds the new kind.
kube_apply "$manifest" ||
  fail_transient STEP_FAILED 'the API server refuses the manifest'
if [[ -f $KGPU_STEP/values/environment ]]; then
  IFS=/ read -r namespace kind name <<<"$(value workloads)"
  environment=$(value environment)
  # shellcheck disable=SC2016 # Go's template
  names='{{range .spec.template.spec.containers}}{{range .env}}{{.name}} {{end}}{{end}}'
  have=$(kube -n "$namespace" get "$kind" "$name" -o go-template="$names") || fail_transient STEP_FAILED "the manifest has no $kind $name"
  [[ " $have " == *" ${environment%%=*} "* ]] || kube -n "$namespace" set env "$kind/$name" "$environment" ||
    fail_transient STEP_FAILED "the API server does not set $environment"
  kube -n "$namespace" annotate --overwrite "$kind" "$name" "kgpu.dev/manifest-sha256=$(value hash)" ||
    fail_transient STEP_FAILED 'the API server does not take the annotation'
fi
