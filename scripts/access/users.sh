#!/usr/bin/env bash
# Prints the users that kgpu made: a line for each of their rights, with the user, the namespace, the role and the end of the
# certificate as openssl prints it, separated by tabs, between kgpu-users=1 and end=1. It is read by `bash -s` and changes nothing.
# kubectl keeps its cache below HOME; there can be none.
export HOME=/proc/kgpu-no-home
# shellcheck disable=SC2016 # Go's template
template='{{range .items}}{{index .metadata.labels "kgpu.dev/user"}}	{{.metadata.namespace}}	{{.roleRef.name}}	{{with .metadata.annotations}}{{with index . "kgpu.dev/certificate-end"}}{{.}}{{end}}{{end}}
{{end}}'
echo kgpu-users=1
timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s get rolebindings --all-namespaces \
  -l kgpu.dev/user,app.kubernetes.io/managed-by=kgpu -o go-template="$template" || exit
echo end=1
