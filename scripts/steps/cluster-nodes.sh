#!/usr/bin/env bash
# Labels and taints nodes. Values: nodes (a line each: node, label|taint|role, text, separated
# by tabs).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t list < <(value_lines nodes)
wait_api
declare -A labels=() taints=()
for line in "${list[@]}"; do
  IFS=$'\t' read -r node what text <<<"$line"
  case $what in
    label) labels[$node]+=" $text" ;;
    role) labels[$node]+=" node-role.kubernetes.io/$text=" ;;
    taint) taints[$node]+=" $text" ;;
    *) fail STEP_FAILED "unknown kind of line: $what" ;;
  esac
done

# wait_node NAME returns when the node object is there: it comes a moment after the join.
wait_node() {
  local told=
  until kube get --raw "/api/v1/nodes/$1" >/dev/null 2>&1; do
    [[ $(seconds_left) -gt 0 ]] || fail NODE_NOT_READY "node $1 does not appear in the cluster"
    if [[ -z $told ]]; then
      waiting "node $1 to appear"
      told=yes
    fi
    sleep 1
  done
}

for node in "${!labels[@]}"; do
  wait_node "$node"
  read -r -a words <<<"${labels[$node]}"
  kube label --overwrite node "$node" "${words[@]}"
done
for node in "${!taints[@]}"; do
  wait_node "$node"
  read -r -a words <<<"${taints[$node]}"
  kube taint --overwrite node "$node" "${words[@]}"
done
