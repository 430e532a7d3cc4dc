#!/usr/bin/env bash
# Prints how the dashboard is reached: lines NAME=VALUE between kgpu-dashboard=1 and end=1. service is its address in the
# cluster; token, a secret in base64, lets its owner in for some hours. After the script, its input has the ServiceAccount whose
# token it is. It is read by `bash -s`.
# kubectl keeps its cache below HOME; there can be none.
export HOME=/proc/kgpu-no-home

kube() {
  timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s -n kgpu-dashboard "$@"
}

open_it() {
  local account token
  read -r account
  echo kgpu-dashboard=1
  kube get service headlamp -o go-template='service={{.spec.clusterIP}}:{{(index .spec.ports 0).port}}{{"\n"}}' </dev/null || return
  token=$(kube create token "$account" --duration=8h </dev/null) || return
  printf 'token=%s\n' "$(printf '%s' "$token" | base64 -w 0)"
  echo end=1
}

open_it; exit # on one line: bash has read no further, and what follows is not for bash
