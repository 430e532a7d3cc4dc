#!/usr/bin/env bash
# Lets the Jobs of a manifest look at the cards and compute, all at the same time, and tells what they saw. Values: manifest
# (all of it in the namespace kgpu-smoke; each pod has its Job's name as label kgpu.dev/smoke, is ready when it has looked
# and computed, and then holds its card), resource (what a card is called). Output: logs (a line "job<tab>line" for each line of a log; the line
# "job<tab>kgpu-held namespace/pod" for each pod that may have the card a Job did not get).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

namespace=kgpu-smoke
ended_too=()
if kubernetes_before 10; then ended_too=(--show-all); fi # later ones do not hide pods that have ended, and the flag is gone
patience=120 # seconds of pauses that something may hinder a pod; a pull that goes on hinders nothing

# A line for each pod: its Job, the node that it must run on, and what it asks for, if anything.
# shellcheck disable=SC2016 # Go's template
asked_template='{{range .items}}{{index .metadata.labels "kgpu.dev/smoke"}} {{index .spec.nodeSelector "kubernetes.io/hostname"}}{{range .spec.containers}}{{range $what, $much := .resources.limits}} {{$what}}{{end}}{{end}}
{{end}}'

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

# set_held LINES finds the Jobs among these that ask for a card of a node where pods outside of the proof hold as many as
# are asked for in vain, or as many instances of them: they are not waited for. held has the names of those pods, a line each.
declare -A held=()
set_held() {
  local job phase words node name count want place
  local -A words_of=() place_of=() asked=() have=() names=()
  held=()
  while read -r job _ phase words; do
    if [[ $phase == Pending && $words == *'Insufficient '* ]]; then words_of[$job]=$words; fi
  done <<<"$1"
  [[ ${#words_of[@]} -gt 0 ]] || return 0
  while read -r job node want; do
    [[ -n $job && -n $want && ${words_of[$job]:-} == *"Insufficient $want"* ]] || continue
    place="$node $want"
    place_of[$job]=$place
    asked[$place]=$((${asked[$place]:-0} + 1))
  done < <(kube -n "$namespace" get pods -l kgpu.dev/smoke -o go-template="$asked_template" 2>/dev/null)
  while read -r want; do
    [[ -n $want ]] || continue
    while read -r node name count; do
      place="$node $want"
      have[$place]=$((${have[$place]:-0} + count))
      names[$place]+=$name$'\n'
    done < <(holding "$want")
  done < <(printf '%s\n' "${place_of[@]#* }" | sort -u)
  for job in "${!place_of[@]}"; do
    place=${place_of[$job]}
    if [[ ${have[$place]:-0} -ge ${asked[$place]} ]]; then held[$job]=${names[$place]}; fi
  done
}

# without_held LINES prints the lines of the Jobs that are waited for.
without_held() {
  local job rest
  while read -r job rest; do
    if [[ -n $job && -z ${held[$job]:-} ]]; then printf '%s %s\n' "$job" "$rest"; fi
  done <<<"$1"
}

# hinders JOB POD PHASE WORDS prints what hinders a Job. Its own events say why it has no pod.
hinders() {
  local object=$2
  if [[ $object == - ]]; then object=$1; fi
  hindrance "$object" "$3" "$4" 'nvidia-smi or the sample in it does not come back'
}

# too_busy WORDS tells whether a container did not start because its node is very busy: runc tries a thousand times, within a
# second, to freeze a process in its control group (libcontainer/cgroups/fs/freezer.go of opencontainers/runc), and nobody
# starts the container of such a Job again.
too_busy() {
  [[ $1 == *'unable to freeze'* ]]
}

# give_up WHY JOB POD PHASE WORDS ends the step. An image that does not come has a reason of its own.
give_up() {
  local reason=SMOKE_FAILED end=fail
  if image_missing "$5"; then reason=$(missing_reason "$5"); fi
  if too_busy "$5"; then end=fail_transient; fi
  {
    explain_pods
    if [[ $3 != - ]]; then kube -n "$namespace" logs "$3" --tail=10; fi
  } >&2 || true
  "$end" "$reason" "Job $2: ${1:-its pod is not ready (${4/#-/there is none})}"
}

# wait_for_all waits until all pods hold what they asked for, or somebody else does; $pods tells then which they are.
wait_for_all() {
  local still=0 moved='' before='' told='' lines why job pod phase words
  while :; do
    pods=$(kube -n "$namespace" get pods -l kgpu.dev/smoke "${ended_too[@]}" -o go-template="$pods_template" 2>/dev/null) || true
    lines=$(late "$pods")
    set_held "$lines"
    lines=$(without_held "$lines")
    if [[ -z $lines ]]; then return; fi
    moved=$(sed -E 's/^([^ ]+ [^ ]+ [^ ]+)( ready$)?.*/\1\2/' <<<"$pods") # words come and go while nothing moves
    if [[ $moved == "$before" ]]; then still=$((still + paused)); else still=0; fi
    before=$moved
    read -r job pod phase words <<<"$lines"
    if [[ $phase == Failed || $phase == Succeeded || $(seconds_left) -le 0 ]]; then
      give_up "$(hinders "$job" "$pod" "$phase" "$words")" "$job" "$pod" "$phase" "$words"
    fi
    why="$(grep -c ' Running ready$' <<<"$pods" || true) of ${#jobs[@]} pods hold what they asked for; $job: ${words:-${phase/#-/no pod yet}}"
    if [[ $why != "$told" ]]; then
      waiting "$(unquoted "$why")"
      told=$why
    fi
    if [[ $still -ge $patience ]]; then give_up_hindered "$lines"; fi
    pause
  done
}

# give_up_hindered LINES gives up when something hinders one of these.
give_up_hindered() {
  local why job pod phase words
  while read -r job pod phase words; do
    why=$(hinders "$job" "$pod" "$phase" "$words")
    if [[ -n $why ]]; then give_up "$why" "$job" "$pod" "$phase" "$words"; fi
  done <<<"$1"
}

# read_log JOB POD keeps what a pod said in the file log. A kubelet that is busy is asked more than once.
read_log() {
  for _ in {1..5}; do
    if kube -n "$namespace" logs "$2" --limit-bytes=16384 >"$KGPU_STEP/log" 2>"$KGPU_STEP/errors"; then return; fi
    pause
  done
  fail SMOKE_FAILED "the log of Job $1 cannot be read: $(<"$KGPU_STEP/errors")"
}

# logs prints what all pods said; that cards are held says this step only.
logs() {
  local job pod name
  while read -r job pod _; do
    [[ -z ${held[$job]:-} ]] || continue
    read_log "$job" "$pod"
    tr -d '\000' <"$KGPU_STEP/log" | awk -v job="$job" '!/^kgpu-held /{print job "\t" $0}'
  done <<<"$pods"
  for job in "${!held[@]}"; do
    while read -r name; do
      if [[ -n $name ]]; then printf '%s\tkgpu-held %s\n' "$job" "$name"; fi
    done <<<"${held[$job]}"
  done
}

proof_owed
wait_api
clear_away 'a former run' SMOKE_FAILED
trap delete_namespace EXIT
kube create -f "$KGPU_STEP/values/manifest" -o name >"$KGPU_STEP/created" 2>"$KGPU_STEP/errors" ||
  fail_transient SMOKE_FAILED "the API server refuses the Jobs: $(<"$KGPU_STEP/errors")"
mapfile -t jobs < <(sed -nE 's/^jobs?(\.batch)?\///p' "$KGPU_STEP/created")
pods=
wait_for_all
logs >"$KGPU_STEP/logs"
output logs <"$KGPU_STEP/logs"
clear_away 'this run' SMOKE_FAILED
trap - EXIT
