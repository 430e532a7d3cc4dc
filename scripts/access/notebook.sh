#!/usr/bin/env bash
# Prints how the notebook is reached: lines NAME=VALUE between kgpu-notebook=1 and end=1. service is its address in the
# cluster, port the one of every node, ready how many of its pods are, pods how many there are, waits the scheduler's words where
# it has no node for one; token is a secret, in base64. Of what is not there, there is no line. After the script, its input has
# what is to be done before: start scales it to one pod where there is to be none, stop to none. It is read by `bash -s`.
# kubectl keeps its cache below HOME; there can be none.
export HOME=/proc/kgpu-no-home

kube() {
  timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s -n kgpu-notebook "$@" </dev/null
}

# get KIND TEMPLATE prints what the template says of the object.
get() {
  kube get "$1" notebook --ignore-not-found -o go-template="$2"
}

# scale N has the notebook have so many pods.
scale() {
  kube scale deployment notebook --replicas="$1" >/dev/null
}

# waits prints why the scheduler has no node for its pod.
waits() {
  kube get pods -l app.kubernetes.io/name=notebook -o go-template='{{range .items}}{{range .status.conditions}}{{if and (eq .type "PodScheduled") (eq .status "False")}}{{.message}} {{end}}{{end}}{{end}}' | tr '\n' ' ' | head -c 500
}

pods() {
  kube get pods -l app.kubernetes.io/name=notebook -o go-template='{{len .items}}'
}

# until_ready waits until its pod is, or the scheduler does not find a node for it: seconds may pass until a card is free again.
until_ready() {
  local ready words round=0
  while ready=$(get deployment '{{or .status.readyReplicas 0}}') && [[ $ready == 0 && $round -lt 90 ]]; do
    words=$(waits) || return
    [[ -z $words || $round -lt 10 ]] || return 0
    round=$((round + 1))
    sleep 1
  done
}

# until_gone waits until no pod of it is left.
until_gone() {
  local left round=0
  while left=$(pods) && [[ $left != 0 && $round -lt 90 ]]; do
    round=$((round + 1))
    sleep 1
  done
}

open_it() {
  local action replicas words left
  read -r action
  echo kgpu-notebook=1
  replicas=$(get deployment '{{.spec.replicas}}') || return
  if [[ $action == start && $replicas == 0 ]]; then
    scale 1 && until_ready || return
  elif [[ $action == stop && -n $replicas ]]; then
    scale 0 && until_gone || return
  fi
  get service '{{with .spec}}service={{.clusterIP}}:{{(index .ports 0).port}}{{"\n"}}{{with (index .ports 0).nodePort}}port={{.}}{{"\n"}}{{end}}{{end}}' || return
  get deployment '{{with .status}}ready={{or .readyReplicas 0}}{{"\n"}}{{end}}' || return
  get secret '{{with .data}}{{with .token}}token={{.}}{{"\n"}}{{end}}{{end}}' || return
  words=$(waits) && left=$(pods) || return
  printf 'pods=%s\nwaits=%s\n' "$left" "$words"
  echo end=1
}

open_it; exit # on one line: bash has read no further, and what follows is not for bash
