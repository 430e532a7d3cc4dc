# shellcheck shell=bash
# Prints what changes by itself while a cluster works, as key=value lines between kgpu-status=1 and end=1: the pod network, and on
# the control plane what the API server knows of nodes and pods. It is read by `bash -s` as root, writes nothing, and waits for no
# program without a time limit. It only collects: bootstrap/facts understands.
set -u
echo kgpu-status=1

pod_network_ways

# Two questions to the API server: its version, and its nodes and pods. The answers are lines of tab-separated fields, which
# are made as those of nodes are.
# shellcheck disable=SC2016,SC2154 # Go's templates; that of nodes is the library's
cluster_template='{{range .items}}{{if eq .kind "Node"}}'$node_template'{{else}}pod	{{.metadata.namespace}}	{{.metadata.name}}	{{with .spec.nodeName}}{{.}}{{end}}	{{with .status.phase}}{{js .}}{{end}}	{{range .status.conditions}}{{if eq .type "Ready"}}{{with .status}}{{js .}}{{end}}{{end}}{{end}}	{{range .spec.containers}}{{with .resources}}{{range $what, $much := .limits}}{{if or (eq (printf "%.11s" $what) "nvidia.com/") (eq $what "alpha.kubernetes.io/nvidia-gpu")}}{{$what}}={{$much}} {{end}}{{end}}{{end}}{{end}}	{{range .spec.initContainers}}{{with .resources}}{{range $what, $much := .limits}}{{if or (eq (printf "%.11s" $what) "nvidia.com/") (eq $what "alpha.kubernetes.io/nvidia-gpu")}}{{$what}}={{$much}} {{end}}{{end}}{{end}}{{end}}	{{range .status.containerStatuses}}{{with .state}}{{with .waiting}}{{with .reason}}{{js (printf "%.100s" .)}} {{end}}{{end}}{{end}}{{end}}	{{range .status.conditions}}{{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}
{{if .metadata.deletionTimestamp}}{{else}}{{if or (eq (printf "%.5s" .metadata.namespace) "kube-") (eq (printf "%.5s" .metadata.namespace) "kgpu-")}}waits	{{.metadata.namespace}}	{{.metadata.name}}	{{with .spec.nodeName}}{{.}}{{end}}	{{range .status.conditions}}{{if eq .type "Ready"}}{{if ne .status "True"}}{{with .lastTransitionTime}}{{js .}}{{end}}{{end}}{{end}}{{end}}	{{range .status.conditions}}{{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{with .lastTransitionTime}}{{js .}}{{end}}{{end}}{{end}}{{end}}	{{range .status.conditions}}{{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}{{range .status.initContainerStatuses}}{{$name := .name}}{{with .state}}{{with .waiting}}	{{$name}} {{with .reason}}{{js (printf "%.100s" .)}}{{end}} {{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}{{range .status.containerStatuses}}{{$name := .name}}{{with .state}}{{with .waiting}}	{{$name}} {{with .reason}}{{js (printf "%.100s" .)}}{{end}} {{with .message}}{{js (printf "%.300s" .)}}{{end}}{{end}}{{end}}{{end}}
{{end}}{{end}}{{end}}{{end}}'
conf=/etc/kubernetes/admin.conf
# kubectl keeps its cache below HOME; there can be none. It has --cache-dir since 1.8, -A since 1.14.
ask() {
  timeout -k 2 20 env HOME=/proc/kgpu-no-home kubectl --kubeconfig "$conf" --request-timeout=15s get "$@" 2>&1
}
# failed STATUS ANSWER prints the last thing that kubectl said.
failed() {
  local last
  if [[ $1 == 124 || $1 == 137 ]]; then
    last='no answer within 20 s'
  else
    last=$(printf '%s\n' "$2" | grep -v '^[[:space:]]*$' | tail -n 1 | head -c 500)
  fi
  printf 'api-error=%s\n' "${last:-kubectl ended with status $1}"
}
if [[ -f $conf ]]; then
  echo control-plane=1
  answer=$(ask --raw /version)
  status=$?
  if [[ $status == 0 ]]; then
    [[ ! $answer =~ \"gitVersion\":\ *\"([^\"]*)\" ]] || printf 'api-version=%s\n' "${BASH_REMATCH[1]}"
    answer=$(ask nodes,pods --all-namespaces -o go-template="$cluster_template")
    status=$?
  fi
  if [[ $status == 0 ]]; then
    echo api=1
    # All nodes, and of the pods those that hold cards, those that make a network, and those of the cluster's own namespaces
    # that wait for a node or with a container; of those that wait for a node with cards the first 50, and how many there are.
    printf '%s\n' "$answer" | awk -F '\t' '
      $1 == "pod" && $7 $8 != "" && $4 == "" && $5 == "Pending" && ++waiting > 50 { next }
      $1 == "node" || $1 == "pod" && ($7 $8 != "" || $3 ~ /^(weave-net|kube-flannel-ds|calico-node|kube-proxy)-/) ||
      $1 == "waits" && $6 $8 != "" { print "cluster=" $0 }
      END { if (waiting > 50) print "cluster=waiting\t" waiting }'
  else
    failed "$status" "$answer"
  fi
fi
echo end=1
