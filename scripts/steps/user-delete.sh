#!/usr/bin/env bash
# Takes all rights from a user that kgpu gave. Values: user. Outputs: namespaces (where there were some, a line each), rights
# (what there was; empty: nothing).
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mine=kgpu.dev/user=$(value user),app.kubernetes.io/managed-by=kgpu

wait_api
namespaces=$(kube get rolebindings --all-namespaces -l "$mine" -o go-template='{{range .items}}{{.metadata.namespace}}{{"\n"}}{{end}}') ||
  fail_transient API_UNREACHABLE 'the rights of the user cannot be read'
cluster=$(kube get clusterrolebindings -l "$mine" -o name) || fail_transient API_UNREACHABLE 'the rights of the user cannot be read'
while read -r namespace; do
  [[ -n $namespace ]] || continue
  kube -n "$namespace" delete rolebindings -l "$mine"
done <<<"$namespaces"
# The last to go: a step that is begun again finds it, and knows that there was such a user.
kube delete clusterrolebindings -l "$mine"
output namespaces <<<"$namespaces"
output rights <<<"$namespaces$cluster"
