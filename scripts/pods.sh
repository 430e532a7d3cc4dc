#!/usr/bin/env bash
# Prints the pods of the cluster that a drain of their node moves or ends: a line each, its node, its name and "cards" if it
# holds some, separated by tabs. Those of DaemonSets, the kubelet's own and those that ended are not among them.
# kubectl keeps its cache below HOME; there can be none. It has -A since 1.14.
export HOME=/proc/kgpu-no-home
# shellcheck disable=SC2016 # Go's template
template='{{range .items}}{{if .spec.nodeName}}{{.spec.nodeName}}	{{.metadata.namespace}}/{{.metadata.name}}	{{.status.phase}}	{{range .metadata.ownerReferences}}{{if .controller}}{{.kind}}{{end}}{{end}}	{{range .spec.containers}}{{range $what, $much := .resources.limits}}{{$what}} {{end}}{{end}}
{{end}}{{end}}'
list=$(timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s get pods --all-namespaces -o go-template="$template") || exit
while IFS= read -r line; do
  # read would take several tabs for one.
  IFS='|' read -r node name phase controller limits <<<"${line//$'\t'/|}"
  case $phase:$controller in
    Succeeded:* | Failed:* | :* | *:DaemonSet | *:Node) continue ;;
  esac
  cards=
  case " $limits" in *' nvidia.com/'* | *' alpha.kubernetes.io/nvidia-gpu'*) cards=cards ;; esac
  printf '%s\t%s\t%s\n' "$node" "$name" "$cards"
done <<<"$list"
