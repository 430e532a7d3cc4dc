#!/usr/bin/env bash
# Deploys the notebook and waits until it answers. Values: manifest (all of it in the namespace kgpu-notebook; the Deployment
# notebook reads its token from the Secret notebook), resource (what its pod asks for), keep (yes: one that serves stays as it
# is: another manifest would end its pod). Outputs: token (a secret), node (where its pod runs), service (its
# address in the cluster, and the port), port (of every node, that leads there; empty: none does).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

namespace=kgpu-notebook
mine=app.kubernetes.io/name=notebook
patience=180 # rounds of a second or more that something may hinder the pod; a pull that goes on hinders nothing
no_card=30   # the same for a card, which nobody is about to give back

# The generation of the Deployment, the one that was acted upon, how many pods there are of it, how many are ready, how many
# there are in all, and why there is none, quoted.
deployment_template='{{.metadata.generation}} {{or .status.observedGeneration 0}} {{or .status.updatedReplicas 0}} {{or .status.readyReplicas 0}} {{or .status.replicas 0}}
{{- range .status.conditions}}{{if and (eq .type "ReplicaFailure") (eq .status "True")}} {{.reason}}: {{printf "%q" .message}}{{end}}{{end}}'

node_template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.spec.nodeName}}{{"\n"}}{{end}}{{end}}'

# make_namespace makes the namespace for the Secret, which must be there before the pod.
make_namespace() {
  local name
  name=$(kube get namespace "$namespace" --ignore-not-found -o name) && [[ -n $name ]] && return
  kube create namespace "$namespace" >/dev/null 2>"$KGPU_STEP/errors" ||
    fail_transient NOTEBOOK_FAILED "the API server refuses the namespace $namespace: $(<"$KGPU_STEP/errors")"
}

# set_token sets token to that of the Secret, which stays, or makes both.
token=
set_token() {
  local file=$KGPU_STEP/token
  token=$(kube -n "$namespace" get secret notebook --ignore-not-found -o go-template='{{with .data}}{{with .token}}{{.}}{{end}}{{end}}' | base64 -d) ||
    fail_transient API_UNREACHABLE 'the Secret of the notebook cannot be read'
  if [[ -n $token ]]; then return; fi
  trap 'rm -f -- "$KGPU_STEP/token"' EXIT
  (umask 077 && head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$file")
  kube -n "$namespace" create secret generic notebook --from-file=token="$file" >/dev/null 2>"$KGPU_STEP/errors" ||
    fail_transient NOTEBOOK_FAILED "the API server refuses the notebook's Secret: $(<"$KGPU_STEP/errors")"
  token=$(<"$file")
}

# apply FILE makes the notebook's objects what the manifest says.
apply() {
  kube_apply "$1" >/dev/null 2>"$KGPU_STEP/errors" ||
    fail_transient NOTEBOOK_FAILED "the API server refuses the notebook: $(<"$KGPU_STEP/errors")"
}

# kept tells whether a notebook serves, and stays as it is, with as many pods as its owner wants. It gets its Service back.
kept() {
  local ready door
  [[ $(value_or keep no) == yes ]] || return 1
  if ! ready=$(kube -n "$namespace" get deployment notebook --ignore-not-found -o jsonpath='{.status.readyReplicas}') ||
    ! door=$(kube -n "$namespace" get service notebook --ignore-not-found -o name); then
    fail_transient API_UNREACHABLE 'the notebook cannot be looked at'
  fi
  [[ ${ready:-0} -gt 0 ]] || return 1
  if [[ -z $door ]]; then
    awk -v RS='---\n' '/(^|\n)kind: Service\n/' "$KGPU_STEP/values/manifest" >"$KGPU_STEP/service"
    apply "$KGPU_STEP/service"
  fi
}

# is_up STATE tells whether the Deployment has one pod, as it wants it, and that is ready.
is_up() {
  local wanted seen new ready all
  read -r wanted seen new ready all _ <<<"$1"
  [[ -n $wanted && $seen == "$wanted" && $new == 1 && $ready == 1 && $all == 1 ]]
}

# give_up WHY POD PHASE WORDS ends the step.
give_up() {
  local reason=NOTEBOOK_FAILED log=
  if image_missing "$4"; then reason=$(missing_reason "$4"); fi
  if [[ $4 == *"Insufficient $(resource)"* ]]; then reason=NOTEBOOK_NO_CARD; fi
  explain_pods >&2
  if [[ $2 != - ]]; then
    log=$(
      kube -n "$namespace" logs "$2" --tail=15
      kube -n "$namespace" logs "$2" --tail=15 --previous 2>/dev/null
    ) || true
    printf '%s\n' "${log//"$token"/…}" >&2
  fi
  fail "$reason" "${1:-the notebook is not ready (${3/#-/there is no pod})}"
}

# wait_for_it waits until the notebook answers.
wait_for_it() {
  local still=0 before='' told='' state pod phase words why last
  while :; do
    state=$(kube -n "$namespace" get deployment notebook -o go-template="$deployment_template" 2>/dev/null) || state=
    if is_up "$state"; then return; fi
    pod=- phase=- words=
    read -r _ pod phase words <<<"$(kube -n "$namespace" get pods -l "$mine" -o go-template="$pods_template" 2>/dev/null)" || true
    if [[ -z $pod ]]; then
      pod=- phase=-
      read -r _ _ _ _ _ words <<<"$state" || true
    fi
    if [[ "$pod $phase" == "$before" ]]; then still=$((still + 1)); else still=0; fi
    before="$pod $phase"
    why=${words:-${phase/#-/no pod yet}}
    note_pulls "$words" -n "$namespace" -l "$mine"
    if [[ -n $pulls ]]; then
      why=$(pull_words "$pulls") # and not by turns what each try and each pause are called
    elif [[ $phase == Pending ]]; then
      last=$(last_event "$pod")
      if [[ -n $last ]]; then why=${last#* }; fi
    fi
    if [[ $why != "$told" ]]; then
      waiting "the notebook: $(unquoted "$why")"
      told=$why
    fi
    if [[ $still -ge $patience || $words == *"Insufficient $(resource)"* && $still -ge $no_card || $(seconds_left) -le 0 ]]; then
      why=$(hindrance "$pod" "$phase" "$words" 'Jupyter in it does not answer')
      why=${why//"$token"/…}
      if [[ -n $why || $(seconds_left) -le 0 ]]; then give_up "$why" "$pod" "$phase" "$words"; fi
    fi
    pause
  done
}

wait_api
make_namespace
set_token
if ! kept; then
  apply "$KGPU_STEP/values/manifest"
  wait_for_it
fi
output token <<<"$token"
kube -n "$namespace" get pods -l "$mine" -o go-template="$node_template" | head -n 1 >"$KGPU_STEP/node" ||
  fail_transient API_UNREACHABLE 'the node of the notebook cannot be read'
output node <"$KGPU_STEP/node"
for what in 'service={.spec.clusterIP}:{.spec.ports[0].port}' 'port={.spec.ports[0].nodePort}'; do
  kube -n "$namespace" get service notebook -o jsonpath="${what#*=}" >"$KGPU_STEP/answer" ||
    fail_transient API_UNREACHABLE 'the Service of the notebook cannot be read'
  output "${what%%=*}" <"$KGPU_STEP/answer"
done
