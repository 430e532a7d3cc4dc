#!/usr/bin/env bash
# Labels, annotates and taints nodes. Values: nodes (a line each: node, label|annotation|taint|untaint|role, text, separated by
# tabs; key- takes a label away, and untaint the taints of a key).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t list < <(value_lines nodes)
declare -A labels=() annotations=() taints=() untaints=()
for line in "${list[@]}"; do
  IFS=$'\t' read -r node what text <<<"$line"
  valid_nodes "$node"
  [[ $text != -* ]] || fail STEP_FAILED "$what $text: that would be an option to kubectl"
  case $what in
    label) labels[$node]+=" $text" ;;
    role) labels[$node]+=" node-role.kubernetes.io/$text=" ;;
    annotation) annotations[$node]+=" $text" ;;
    taint) taints[$node]+=" $text" ;;
    untaint) untaints[$node]+=" $text" ;;
    *) fail STEP_FAILED "unknown kind of line: $what" ;;
  esac
done
wait_api

# wait_node NAME returns when the node object is there: it comes a moment after the join.
wait_node() {
  local told=
  until kube get --raw "/api/v1/nodes/$1" >/dev/null 2>&1; do
    [[ $(seconds_left) -gt 0 ]] || fail NODE_NOT_READY "node $1 does not appear in the cluster"
    if [[ -z $told ]]; then
      waiting "node $1 to appear"
      told=yes
    fi
    pause
  done
}

# mark VERB NODE TEXT labels, annotates or taints a node; to do so again changes nothing, nor to take away what is not there.
mark() {
  local status=0
  local -a words
  wait_node "$2"
  read -r -a words <<<"$3"
  kube "$1" --overwrite node "$2" "${words[@]}" 2>"$KGPU_STEP/errors" || status=$?
  cat "$KGPU_STEP/errors" >&2
  if [[ $status == 0 ]] || grep -qE '^error: taint "[^"]*" not found$' "$KGPU_STEP/errors"; then return 0; fi
  if refused "$KGPU_STEP/errors"; then fail STEP_FAILED "kubectl $1 of node $2 is refused"; fi
  fail_transient API_UNREACHABLE "kubectl $1 of node $2 failed"
}

for node in "${!labels[@]}"; do mark label "$node" "${labels[$node]}"; done
for node in "${!annotations[@]}"; do mark annotate "$node" "${annotations[$node]}"; done
for node in "${!taints[@]}"; do mark taint "$node" "${taints[$node]}"; done
for node in "${!untaints[@]}"; do
  for key in ${untaints[$node]}; do mark taint "$node" "$key-"; done # one by one: kubectl removes none where one is missing
done
