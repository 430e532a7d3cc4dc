#!/usr/bin/env bash
# Applies an add-on. Values: those of an add-on; manifest; or url and sha256, and what is set in the workload of that manifest:
# environment (NAME=VALUE, unless the manifest says NAME itself) and hash; awaited (yes: a Deployment, until it has its pod; for
# the others cluster-ready, gpu-ready and the proof wait); prove (yes: the network is to be proven).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# give_up WHY POD PHASE WORDS ends the step.
give_up() {
  local reason
  reason=$(value failed)
  if [[ -n $pulls ]]; then # which has all that the pods and their events would say
    of_other_hosts
    fail "${pulls%%$'\t'*}" "${pulls#*$'\t'}"
  fi
  if image_missing "$4"; then reason=$(image_reason "$1") || reason=IMAGE_UNAVAILABLE; fi
  explain_pods >&2
  fail "$reason" "${1:-$(value title) is not ready (${3/#-/there is no pod})}"
}

manifest=$KGPU_STEP/values/manifest
if [[ ! -f $manifest ]]; then
  manifest=$KGPU_STEP/manifest.yaml
  fetch "$(value url)" "$manifest" "$(value sha256)"
fi
IFS=/ read -r namespace kind name <<<"$(value workload)"
if [[ $(value_or prove no) == yes ]]; then network_unproven; fi
wait_api
apply_addon "$manifest" # a definition and an object of its kind may come in one manifest: the next try finds the new kind
if [[ -f $KGPU_STEP/values/environment ]]; then
  environment=$(value environment)
  # shellcheck disable=SC2016 # Go's template
  names='{{range .spec.template.spec.containers}}{{range .env}}{{.name}} {{end}}{{end}}'
  have=$(kube -n "$namespace" get "$kind" "$name" -o go-template="$names") || fail_transient STEP_FAILED "the manifest has no $kind $name"
  [[ " $have " == *" ${environment%%=*} "* ]] || kube -n "$namespace" set env "$kind/$name" "$environment" ||
    fail_transient STEP_FAILED "the API server does not set $environment"
  kube -n "$namespace" annotate --overwrite "$kind" "$name" "kgpu.dev/manifest-sha256=$(value hash)" ||
    fail_transient STEP_FAILED 'the API server does not take the annotation'
fi
if [[ $(value_or awaited no) == yes ]]; then wait_deployment "$name"; fi
