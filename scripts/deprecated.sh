#!/usr/bin/env bash
# Prints the versions of APIs that are to be removed and that somebody asked this host's own API server for since it started, as each
# counts for itself, and the objects that were last written by them: lines between kgpu-deprecated=1 and end=1. api=GROUP VERSION RESOURCE REMOVED, of which
# GROUP is - for the core's; object=RESOURCE WHO NAMESPACE/NAME, at most 50 of each. What is deprecated and stays is left out: the cluster
# itself asks for endpoints.v1, and the API server does not count by client. It is read by `bash -s`, and changes nothing.
# Source: https://kubernetes.io/blog/2025/04/24/endpoints-deprecation
# kubectl keeps its cache below HOME; there can be none.
export HOME=/proc/kgpu-no-home

kube() {
  timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --server "https://$(api_server)" --request-timeout=30s "$@" </dev/null
}

# label NAME LINE prints the value of a metric's label; only what can be part of a name is one.
label() {
  [[ $2 =~ [{,]$1=\"([A-Za-z0-9.-]*)\" ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# written RESOURCE GROUP VERSION prints the objects that were last written by this version, and by whom.
written() {
  local api=$3 template
  [[ -z $2 ]] || api=$2/$3
  # shellcheck disable=SC2016 # Go's template
  template='{{range .items}}{{$m := .metadata}}{{range .metadata.managedFields}}{{if eq .apiVersion "API"}}object=RESOURCE {{js .manager}} {{with $m.namespace}}{{.}}{{end}}/{{$m.name}}{{"\n"}}{{end}}{{end}}{{end}}'
  template=${template/API/$api}
  kube get "$1.$3${2:+.$2}" --all-namespaces -o go-template="${template/RESOURCE/$1}" |
    sort -u | head -n 50
}

metrics=$(kube get --raw /metrics) || exit
echo kgpu-deprecated=1
while IFS= read -r line; do
  [[ $line == 'apiserver_requested_deprecated_apis{'*' 1' ]] || continue
  group=$(label group "$line") version=$(label version "$line") resource=$(label resource "$line") removed=$(label removed_release "$line")
  [[ -n $version && -n $resource && -n $removed ]] || continue
  printf 'api=%s %s %s %s\n' "${group:--}" "$version" "$resource" "$removed"
  written "$resource" "$group" "$version" 2>/dev/null || true
done <<<"$metrics" | sort -u
echo end=1
