# shellcheck shell=bash
# Nodes whose pods are away for a while. A label says so from before the node is cordoned until after it is let in, so that
# a later run lets in what an interrupted one left: "kgpu" if kgpu cordoned it, "other" if it was cordoned before and is to
# stay so.
drained_label=kgpu.dev/drained

# node_there NODE tells whether there is such a node, once the API server tells: a look that fails says nothing about it.
node_there() {
  local name
  wait_api
  until name=$(kube get node "$1" --ignore-not-found -o name); do
    [[ $(seconds_left) -gt 0 ]] || fail API_UNREACHABLE "the API server does not tell whether there is a node $1"
    pause
  done
  [[ -n $name ]]
}

# cordon NODE keeps new pods away.
cordon() {
  local by unschedulable
  by=$(drained_by "$1") || return 1
  if [[ -z $by ]]; then
    unschedulable=$(kube get node "$1" -o go-template='{{.spec.unschedulable}}') || return 1
    by=kgpu
    if [[ $unschedulable == true ]]; then by=other; fi
    kube label --overwrite node "$1" "$drained_label=$by" || return 1
  fi
  kube cordon "$1"
}

# begin_drain NODE cordons a node, unless nobody was asked about drains (value agreed: yes, somebody was, and agreed) and pods
# with cards are there now: those have come since the plan was shown, and the step ends.
begin_drain() {
  local come
  come=$(newcomers "$1") || return 1
  [[ -z $come ]] || fail NODE_DRAIN_BLOCKED "$come"
  cordon "$1" || return 1
  come=$(newcomers "$1") || return 1 # until that moment more could come
  if [[ -n $come ]]; then
    uncordon "$1" || true
    fail NODE_DRAIN_BLOCKED "$come"
  fi
}

# newcomers NODE names those pods, of the pods that scripts/pods.sh asks about.
newcomers() {
  local pods
  [[ $(value_or agreed no) != yes ]] || return 0
  pods=$(node_pods "$1" | awk '
    $2 != "Succeeded" && $2 != "Failed" && !/ (mirror|DaemonSet|Node)( |$)/ && / limit=(nvidia\.com\/|alpha\.kubernetes\.io\/nvidia-gpu)/ { print $1 }' |
    paste -sd, | sed 's/,/, /g') || return 1
  [[ -z $pods ]] || printf 'pods have come to node %s since the plan was shown: %s' "$1" "$pods"
}

drained_by() {
  kube get node "$1" -o go-template="{{with .metadata.labels}}{{with index . \"$drained_label\"}}{{.}}{{end}}{{end}}"
}

# uncordon NODE lets pods come again, if it is kgpu that has kept them away. Who has is forgotten only when that is done.
uncordon() {
  local by
  by=$(drained_by "$1") || return 1
  if [[ $by == kgpu ]]; then
    kube uncordon "$1" || return 1
  else
    echo "node $1 stays cordoned: it was before kgpu came"
  fi
  kube label node "$1" "$drained_label-"
}

# set_gpu_label NODE VALUE lets the device plugin, and what else runs where cards are, come (true) or go (drained).
set_gpu_label() {
  kube label --overwrite node "$1" "kgpu.dev/gpu=$2"
}

# gpu_label NODE prints that label.
gpu_label() {
  kube get node "$1" -o go-template='{{with .metadata.labels}}{{with index . "kgpu.dev/gpu"}}{{.}}{{end}}{{end}}'
}

# A line for each pod of a node: its name, its phase, "mirror" if the kubelet made it, the kind of its controller,
# "cards" if it runs where cards are, what its containers may have of which there are limits, and "ending" if it was told to
# end.
# shellcheck disable=SC2016 # Go's template
node_pods_template='{{range .items}}{{.metadata.namespace}}/{{.metadata.name}} {{js .status.phase}}{{with .metadata.annotations}}{{if index . "kubernetes.io/config.mirror"}} mirror{{end}}{{end}}{{range .metadata.ownerReferences}}{{if .controller}} {{.kind}}{{end}}{{end}}{{with .spec.nodeSelector}}{{if index . "kgpu.dev/gpu"}} cards{{end}}{{end}}{{range .status.conditions}}{{if eq .type "Ready"}} Ready={{js .status}}{{end}}{{end}}{{range .spec.containers}}{{range $what, $much := .resources.limits}} limit={{$what}}{{end}}{{end}}{{if .metadata.deletionTimestamp}} ending{{end}}
{{end}}'

# local_data prints the flag by which a drain takes pods that have files of their own.
local_data() {
  if kubernetes_before 20; then echo --delete-local-data; else echo --delete-emptydir-data; fi
}

# node_pods NODE prints its pods.
node_pods() {
  kube get pods --all-namespaces --field-selector "spec.nodeName=$1" -o go-template="$node_pods_template"
}
