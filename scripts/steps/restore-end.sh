#!/usr/bin/env bash
# Waits until the cluster knows which of its nodes are there: a node that was ready when the backup was made is so in it until it has
# not been heard of for a minute. Then the agents of the network, which may wait long before they ask an API server again that was
# away, or know another address of it, begin anew; until they do, the data tells that they are ready. The proofs of network and cards
# are owed. Of several control planes one does so, as the last. On all, what was sent for the restore goes.
# Values: agents (DaemonSets, as NAMESPACE/daemonset/NAME, a line each; none: another control plane does that).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# list_nodes keeps what the cluster says of its nodes, a line each: the name, and True if it is ready.
list_nodes() {
  kube get nodes -o go-template='{{range .items}}{{.metadata.name}}{{range .status.conditions}}{{if eq .type "Ready"}} {{.status}}{{end}}{{end}}
{{end}}' >"$KGPU_STEP/nodes" 2>"$KGPU_STEP/errors"
}

# silent prints the nodes that are ready by the data, and that nobody has heard of for 50 seconds.
silent() {
  local now name renewed ready
  now=$(date +%s)
  list_nodes || return 1
  while read -r name ready; do
    [[ $ready == True ]] || continue
    renewed=$(kube -n kube-node-lease get lease "$name" -o jsonpath='{.spec.renewTime}' 2>/dev/null) || renewed=
    [[ $((now - $(date -d "${renewed:-@0}" +%s))) -lt 50 ]] || printf '%s ' "$name"
  done <"$KGPU_STEP/nodes"
}

# What the pods of a DaemonSet are, a line each: the node, and what tells a pod from another one of its name.
# shellcheck disable=SC2016 # Go's template
pods_template='{{range .items}}{{.spec.nodeName}} {{.metadata.uid}}
{{end}}'

# By the DaemonSets that began anew: their selectors.
declare -A selectors=()

# begin_anew NAMESPACE NAME deletes the pods of a DaemonSet, which makes new ones, and keeps what they were.
begin_anew() {
  local selector
  # shellcheck disable=SC2016 # Go's template
  selector=$(kube -n "$1" get daemonset "$2" --ignore-not-found \
    -o go-template='{{range $key, $value := .spec.selector.matchLabels}}{{$key}}={{$value}},{{end}}') || return
  [[ -n $selector ]] || return 0
  selectors[$2]=${selector%,}
  kube -n "$1" get pods -l "${selector%,}" -o go-template="$pods_template" >"$KGPU_STEP/old.$2" || return
  kube -n "$1" delete pods --wait=false -l "${selector%,}"
}

# unmade NAMESPACE NAME prints the nodes that are there and have no new pod of a DaemonSet that began anew.
unmade() {
  [[ -n ${selectors[$2]:-} ]] || return 0
  list_nodes || return
  kube -n "$1" get pods -l "${selectors[$2]}" -o go-template="$pods_template" >"$KGPU_STEP/new" 2>"$KGPU_STEP/errors" || return
  awk 'FILENAME ~ /nodes$/ { there[$1] = $2 == "True"; next }
    FILENAME ~ /new$/ { new[$1, $2]; next }
    NF == 2 { node[$2] = $1 }
    END {
      for (pod in new) { split(pod, at, SUBSEP); if (!(at[2] in node)) made[at[1]] }
      for (uid in node) if (there[node[uid]] && !(node[uid] in made)) printf "%s ", node[uid]
    }' "$KGPU_STEP/nodes" "$KGPU_STEP/new" "$KGPU_STEP/old.$2"
}

# see_nodes waits for what the cluster says of its nodes, and has their network begin anew.
see_nodes() {
  local names told='' space name
  wait_api
  until names=$(silent) && [[ -z $names ]]; do
    [[ $(seconds_left) -gt 0 ]] || fail API_UNREACHABLE "the cluster does not tell which of its nodes are there: ${names:-$(tail -n 1 "$KGPU_STEP/errors")}"
    if [[ -z $told ]]; then waiting "what the cluster says of its nodes: ${names:-the API server}"; fi
    told=yes
    pause
  done
  while IFS=/ read -r space _ name; do
    begin_anew "$space" "$name" || fail API_UNREACHABLE "the pods of $space/$name cannot be deleted"
  done < <(value_lines agents)
  network_unproven
  proof_owed
  while IFS=/ read -r space _ name; do
    await_new "$space" "$name"
  done < <(value_lines agents)
}

# await_new NAMESPACE NAME waits for the new pods of a DaemonSet while there is time. A pod that does not end, or is not made, keeps nobody
# from what comes then, which waits until all is ready and says what is not.
await_new() {
  local names told=''
  until names=$(unmade "$1" "$2") && [[ -z $names ]]; do
    names=${names:+on ${names% }}
    if [[ $(seconds_left) -le 0 ]]; then
      warning "$1/$2 does not make new pods: ${names:-$(tail -n 1 "$KGPU_STEP/errors")}"
      return
    fi
    if [[ ${names:-the API server} != "$told" ]]; then
      told=${names:-the API server}
      waiting "$1/$2 to begin anew: $told"
    fi
    pause
  done
}

if [[ -n $(value_or agents '') ]]; then
  see_nodes
else
  rm -f /var/lib/kgpu/{unproven,network-unproven} # the last one owes them for all
fi
rm -rf "$restore_dir"
