#!/usr/bin/env bash
# Deploys the dashboard and waits until it answers. Values: manifest (with the Deployment headlamp in the namespace
# kgpu-dashboard).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# shellcheck disable=SC2034 # the library uses it
namespace=kgpu-dashboard
mine=app.kubernetes.io/name=headlamp
patience=30 # rounds of a second or more that something may hinder the pod; a pull that goes on hinders nothing

# The generation of the Deployment, the one that was acted upon, how many pods there are of it, how many are ready.
deployment_template='{{.metadata.generation}} {{or .status.observedGeneration 0}} {{or .status.updatedReplicas 0}} {{or .status.readyReplicas 0}}'

is_up() {
  local wanted seen new ready
  read -r wanted seen new ready <<<"$1"
  [[ -n $wanted && $seen == "$wanted" && $new == 1 && $ready -ge 1 ]]
}

# give_up WHY PHASE WORDS ends the step.
give_up() {
  local reason=DASHBOARD_FAILED
  if [[ -n $pulls ]]; then # which has all that the pods and their events would say
    of_other_hosts
    fail "${pulls%%$'\t'*}" "${pulls#*$'\t'}"
  fi
  if image_missing "$3"; then reason=$(image_reason "$1") || reason=IMAGE_UNAVAILABLE; fi
  explain_pods >&2
  fail "$reason" "${1:-the dashboard is not ready (${2/#-/there is no pod})}"
}

wait_for_it() {
  local still=0 before='' state pod phase words why told=''
  while :; do
    state=$(kube -n "$namespace" get deployment headlamp -o go-template="$deployment_template" 2>/dev/null) || state=
    if is_up "$state"; then return; fi
    pod=- phase=- words=
    read -r _ pod phase words <<<"$(kube -n "$namespace" get pods -l "$mine" -o go-template="$pods_template" 2>/dev/null | tail -n 1)" || true
    if [[ -z $pod ]]; then pod=- phase=-; fi
    if [[ "$pod $phase" == "$before" ]]; then still=$((still + 1)); else still=0; fi
    before="$pod $phase"
    why=${words:-${phase/#-/no pod yet}}
    note_pulls "$words" -n "$namespace" -l "$mine"
    if [[ -n $pulls ]]; then why=$(pull_words "$pulls"); fi
    if [[ $why != "$told" ]]; then
      waiting "the dashboard: $(unquoted "$why")"
      told=$why
    fi
    if [[ $still -ge $patience || $(seconds_left) -le 0 ]]; then
      why=$(hindrance "$pod" "$phase" "$words" 'the dashboard in it does not answer')
      if [[ -n $why || $(seconds_left) -le 0 ]]; then give_up "$why" "$phase" "$words"; fi
    fi
    pause
  done
}

wait_api
kube_apply "$KGPU_STEP/values/manifest" >/dev/null 2>"$KGPU_STEP/errors" ||
  fail_transient DASHBOARD_FAILED "the API server refuses the dashboard: $(<"$KGPU_STEP/errors")"
wait_for_it
