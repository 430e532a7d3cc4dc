#!/usr/bin/env bash
# Deploys the notebook and waits until it answers. Values: those of an add-on; manifest (all of it in the namespace kgpu-notebook;
# the Deployment notebook reads its token from the Secret notebook), resource (what its pod asks for), keep (yes: one that serves
# stays as it is: another manifest would end its pod). Outputs: token (a secret), node (where its pod runs), service (its
# address in the cluster, and the port), port (of every node, that leads there; empty: none does).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

namespace=kgpu-notebook
mine=app.kubernetes.io/name=notebook
# shellcheck disable=SC2034 # the library uses it
patience=180

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
    apply_addon "$KGPU_STEP/service"
  fi
}

# give_up WHY POD PHASE WORDS ends the step.
give_up() {
  local why=${1//"$token"/…} reason=NOTEBOOK_FAILED log=
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
  fail "$reason" "${why:-the notebook is not ready (${3/#-/there is no pod})}"
}

wait_api
make_namespace
set_token
if ! kept; then
  apply_addon "$KGPU_STEP/values/manifest"
  wait_deployment notebook
fi
output token <<<"$token"
kube -n "$namespace" get pods -l "$mine" -o go-template="$node_template" | sed -n 1p >"$KGPU_STEP/node" ||
  fail_transient API_UNREACHABLE 'the node of the notebook cannot be read'
output node <"$KGPU_STEP/node"
for what in 'service={.spec.clusterIP}:{.spec.ports[0].port}' 'port={.spec.ports[0].nodePort}'; do
  kube -n "$namespace" get service notebook -o jsonpath="${what#*=}" >"$KGPU_STEP/answer" ||
    fail_transient API_UNREACHABLE 'the Service of the notebook cannot be read'
  output "${what%%=*}" <"$KGPU_STEP/answer"
done
