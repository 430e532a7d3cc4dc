#!/usr/bin/env bash
# Prints how the notebook is reached: lines NAME=VALUE between kgpu-notebook=1 and end=1. service is its address in the
# cluster, port the one of every node, ready how many of its pods are; token is a secret, in base64. Of what is not there,
# there is no line. It is read by `bash -s` and changes nothing.
# kubectl keeps its cache below HOME; there can be none.
export HOME=/proc/kgpu-no-home

# get KIND TEMPLATE prints what the template says of the object.
get() {
  timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s -n kgpu-notebook get "$1" notebook --ignore-not-found -o go-template="$2"
}

echo kgpu-notebook=1
get service '{{with .spec}}service={{.clusterIP}}:{{(index .ports 0).port}}{{"\n"}}{{with (index .ports 0).nodePort}}port={{.}}{{"\n"}}{{end}}{{end}}' || exit
get deployment '{{with .status}}ready={{or .readyReplicas 0}}{{"\n"}}{{end}}' || exit
get secret '{{with .data}}{{with .token}}token={{.}}{{"\n"}}{{end}}{{end}}' || exit
echo end=1
