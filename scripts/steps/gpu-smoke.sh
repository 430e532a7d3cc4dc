#!/usr/bin/env bash
# Lets the Jobs of a manifest look at the cards, all at the same time, and tells what they saw. Values: manifest (all of it
# in the namespace kgpu-smoke; each pod has its Job's name as label kgpu.dev/smoke, is ready when it has looked, and then
# holds its card). Output: logs (a line "job<tab>line" for each line of a log).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

namespace=kgpu-smoke
ended_too=()
if kubernetes_before 10; then ended_too=(--show-all); fi # later ones do not hide pods that have ended, and the flag is gone
patience=120 # rounds of a second that something may hinder a pod; a pull that goes on hinders nothing

# A line for each pod: Job, pod, phase, and either "ready" or the words of the scheduler or the kubelet, quoted.
pods_template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{index .metadata.labels "kgpu.dev/smoke"}} {{.metadata.name}} {{.status.phase}}
{{- with .status.reason}} {{.}}:{{end}}{{with .status.message}} {{printf "%q" .}}{{end}}
{{- range .status.conditions}}{{if and (eq .type "PodScheduled") (eq .status "False")}} {{.reason}}:{{with .message}} {{printf "%q" .}}{{end}}{{end}}{{if and (eq .type "Ready") (eq .status "True")}} ready{{end}}{{end}}
{{- range .status.containerStatuses}}{{with .state.waiting}} {{.reason}}:{{with .message}} {{printf "%q" .}}{{end}}{{end}}{{with .state.terminated}} {{.reason}}: exit status {{.exitCode}}{{with .message}} {{printf "%q" .}}{{end}}{{end}}{{end}}
{{end}}{{end}}'

# A line for each event: Normal or Warning, and its words.
events_template='{{range .items}}{{.type}} {{.reason}}: {{printf "%q" .message}}
{{end}}'

# A line for each pod: its name, its node, and a mark for each container that has cards.
holders_template='{{range .items}}{{if .spec.nodeName}}{{.metadata.namespace}}/{{.metadata.name}} on {{.spec.nodeName}}{{range .spec.containers}}{{with .resources.limits}}{{if or (index . "nvidia.com/gpu") (index . "alpha.kubernetes.io/nvidia-gpu")}} gpu{{end}}{{end}}{{end}}
{{end}}{{end}}'

# there tells whether the namespace is there, or may be.
there() {
  local name
  name=$(kube get namespace "$namespace" --ignore-not-found -o name 2>/dev/null) || return 0
  [[ -n $name ]]
}

# delete_namespace lets it go, with all in it.
delete_namespace() {
  local -a flags=(--ignore-not-found --wait=false)
  if kubernetes_before 11; then flags=("${flags[0]}"); fi
  kube delete namespace "$namespace" "${flags[@]}" >/dev/null 2>&1 || true
}

# clear_away WHOSE deletes the namespace and returns when it is gone: cards are free only then.
clear_away() {
  there || return 0
  waiting "the end of the pods of $1"
  while there; do
    delete_namespace
    [[ $(seconds_left) -gt 0 ]] || fail SMOKE_FAILED "the namespace $namespace of $1 does not go away"
    sleep 1
  done
}

# late PODS prints the Jobs whose pods do not hold what they asked for, those that never will first: Job, pod or -, phase
# or -, words.
late() {
  local job state ended='' other=''
  local -A states=()
  while read -r job state; do
    if [[ -n $job ]]; then states[$job]=$state; fi
  done <<<"$1"
  for job in "${jobs[@]}"; do
    state=${states[$job]:-- -}
    case $state in
      *' Running ready') ;;
      *' Failed'* | *' Succeeded'*) ended+="$job $state"$'\n' ;;
      *) other+="$job $state"$'\n' ;;
    esac
  done
  printf '%s' "$ended$other"
}

# hindrance JOB POD PHASE WORDS prints what hinders a pod, if more than time is needed.
hindrance() {
  local pod=$2 phase=$3 words=$4 last
  if [[ $pod == - ]]; then pod=$1; fi # the Job's own events say why it has none
  case $words in
    '' | ContainerCreating:* | PodInitializing:*)
      if [[ $phase == Running ]]; then
        printf 'the pod runs, and nvidia-smi in it does not come back'
        return
      fi
      last=$(kube -n "$namespace" get events --field-selector "involvedObject.name=$pod" --sort-by=.lastTimestamp \
        -o go-template="$events_template" 2>/dev/null | tail -n 1) || true
      if [[ $last == 'Warning '* ]]; then
        unquoted "${last#Warning }"
      elif [[ $phase == Pending && -z $words ]]; then
        printf 'neither the scheduler nor the kubelet of its node does anything about its pod'
      fi
      ;;
    *Insufficient*) printf '%s; cards are held by: %s' "$(unquoted "$words")" "$(holders)" ;;
    *) unquoted "$words" ;;
  esac
}

# unquoted TEXT prints a text without what printf %q of the templates did to it.
unquoted() {
  local text=${1//\\n/ }
  text=${text//\\\"/$'\1'}
  text=${text//\"/}
  text=${text//$'\1'/\"}
  printf '%s' "${text%:}"
}

# holders prints which pods have cards.
holders() {
  local list
  list=$(kube get pods --all-namespaces --field-selector='status.phase!=Succeeded,status.phase!=Failed' -o go-template="$holders_template" 2>/dev/null |
    sed -n "/^$namespace\//d; s/\( gpu\)\{1,\}$//p" | paste -sd , | sed 's/,/, /g') || true
  printf '%s' "${list:-nobody}"
}

# give_up WHY JOB POD PHASE WORDS ends the step. An image that does not come has a reason of its own.
give_up() {
  local reason=SMOKE_FAILED
  case $5 in
    ErrImage* | ImagePull* | InvalidImageName* | ImageInspect* | RegistryUnavailable*) reason=SMOKE_IMAGE ;;
  esac
  {
    kube -n "$namespace" get pods -o wide
    kube -n "$namespace" get events --field-selector=type=Warning --sort-by=.lastTimestamp | tail -n 15
    if [[ $3 != - ]]; then kube -n "$namespace" logs "$3" --tail=10; fi
  } >&2 || true
  fail "$reason" "Job $2: ${1:-its pod is not ready (${4/#-/there is none})}"
}

# wait_for_all waits until all pods hold what they asked for; $pods tells then which they are.
wait_for_all() {
  local still=0 moved='' before='' told='' lines why job pod phase words
  while :; do
    pods=$(kube -n "$namespace" get pods -l kgpu.dev/smoke "${ended_too[@]}" -o go-template="$pods_template" 2>/dev/null) || true
    lines=$(late "$pods")
    if [[ -z $lines ]]; then return; fi
    moved=$(sed -E 's/^([^ ]+ [^ ]+ [^ ]+)( ready$)?.*/\1\2/' <<<"$pods") # words come and go while nothing moves
    if [[ $moved == "$before" ]]; then still=$((still + 1)); else still=0; fi
    before=$moved
    read -r job pod phase words <<<"$lines"
    if [[ $phase == Failed || $phase == Succeeded || $(seconds_left) -le 0 ]]; then
      give_up "$(hindrance "$job" "$pod" "$phase" "$words")" "$job" "$pod" "$phase" "$words"
    fi
    why="$(grep -c ' Running ready$' <<<"$pods" || true) of ${#jobs[@]} pods hold what they asked for; $job: ${words:-${phase/#-/no pod yet}}"
    if [[ $why != "$told" ]]; then
      waiting "$(unquoted "$why")"
      told=$why
    fi
    if [[ $still -ge $patience ]]; then give_up_hindered "$lines"; fi
    sleep 1
  done
}

# give_up_hindered LINES gives up when something hinders one of these.
give_up_hindered() {
  local why job pod phase words
  while read -r job pod phase words; do
    why=$(hindrance "$job" "$pod" "$phase" "$words")
    if [[ -n $why ]]; then give_up "$why" "$job" "$pod" "$phase" "$words"; fi
  done <<<"$1"
}

# logs prints what all pods said.
logs() {
  local job pod
  while read -r job pod _; do
    kube -n "$namespace" logs "$pod" --limit-bytes=16384 >"$KGPU_STEP/log" 2>"$KGPU_STEP/errors" ||
      fail SMOKE_FAILED "the log of Job $job cannot be read: $(<"$KGPU_STEP/errors")"
    tr -d '\000' <"$KGPU_STEP/log" | awk -v job="$job" '{print job "\t" $0}'
  done <<<"$pods"
}

wait_api
clear_away 'a former run'
trap delete_namespace EXIT
kube create -f "$KGPU_STEP/values/manifest" -o name >"$KGPU_STEP/created" 2>"$KGPU_STEP/errors" ||
  fail_transient SMOKE_FAILED "the API server refuses the Jobs: $(<"$KGPU_STEP/errors")"
mapfile -t jobs < <(sed -nE 's/^jobs?(\.batch)?\///p' "$KGPU_STEP/created")
pods=
wait_for_all
logs >"$KGPU_STEP/logs"
output logs <"$KGPU_STEP/logs"
clear_away 'this run'
