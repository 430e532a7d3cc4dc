# shellcheck shell=bash
# Pods in $namespace, which a step sets: what they wait for, and who has the cards.
namespace=

# A line for each pod that stays: its Job of the proof, or else its own name; its own name; phase; and either "ready" or the
# words of the scheduler or the kubelet, quoted or escaped: a kubelet must not get a line about another pod.
# shellcheck disable=SC2034 # steps use it
pods_template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{or (index .metadata.labels "kgpu.dev/smoke") .metadata.name}} {{.metadata.name}} {{js .status.phase}}
{{- with .status.reason}} {{js .}}:{{end}}{{with .status.message}} {{printf "%q" .}}{{end}}
{{- range .status.conditions}}{{if and (eq .type "PodScheduled") (eq .status "False")}} {{js .reason}}:{{with .message}} {{printf "%q" .}}{{end}}{{end}}{{if and (eq .type "Ready") (eq .status "True")}} ready{{end}}{{end}}
{{- range .status.containerStatuses}}{{with .state.waiting}} {{js .reason}}:{{with .message}} {{printf "%q" .}}{{end}}{{end}}{{with .state.terminated}} {{js .reason}}: exit status {{.exitCode}}{{with .message}} {{printf "%q" .}}{{end}}{{end}}{{end}}
{{end}}{{end}}'

# A line for each event: Normal or Warning, and its words.
events_template='{{range .items}}{{.type}} {{js .reason}}: {{printf "%q" .message}}
{{end}}'

# A line for each pod on a node: the node, its name, and what its containers may have.
# shellcheck disable=SC2016 # Go's template
holders_template='{{range .items}}{{if .spec.nodeName}}{{.spec.nodeName}} {{.metadata.namespace}}/{{.metadata.name}}{{range .spec.containers}}{{range $what, $much := .resources.limits}} {{$what}}={{$much}}{{end}}{{end}}
{{end}}{{end}}'

# resource is what pods ask for when they want a card.
resource() {
  value_or resource nvidia.com/gpu
}

# holding RESOURCE prints a line for each pod outside of $namespace that has some of it: its node, its name, how many.
holding() {
  kube get pods --all-namespaces --field-selector='status.phase!=Succeeded,status.phase!=Failed' -o go-template="$holders_template" 2>/dev/null |
    awk -v resource="$1" -v own="$namespace/" '
      index($2, own) == 1 { next }
      {
        cards = 0
        for (i = 3; i <= NF; i++) { split($i, limit, "="); if (limit[1] == resource) cards += limit[2] }
        if (cards > 0) print $1, $2, cards
      }' || true
}

# lacking WORDS prints the resource of which the scheduler says that there is too little: cards, or instances of cards.
lacking() {
  local name
  name=$(grep -oE 'Insufficient (nvidia\.com/[A-Za-z0-9._-]+)' <<<"$1" | head -n 1)
  name=${name#* }
  name=${name%.}
  printf '%s' "${name:-$(resource)}"
}

# holders WORDS prints which pods have what the scheduler lacks.
holders() {
  local list
  list=$(holding "$(lacking "$1")" | awk '{ print $2 " on " $1 }' | paste -sd , | sed 's/,/, /g')
  printf '%s' "${list:-nobody}"
}

# last_event NAME prints the last event about an object, as the template has it.
last_event() {
  kube -n "$namespace" get events --field-selector "involvedObject.name=$1" --sort-by=.lastTimestamp \
    -o go-template="$events_template" 2>/dev/null | tail -n 1 || true
}

# unquoted TEXT prints a text without what printf %q of the templates did to it.
unquoted() {
  local text=${1//\\n/ }
  text=${text//\\\"/$'\1'}
  text=${text//\"/}
  text=${text//$'\1'/\"}
  printf '%s' "${text%:}"
}

# last_words NAMESPACE POD [CONTAINER] prints how the log of a program ends that ended. It writes what it likes there: that is
# bounded, without control characters, and without what looks like a secret.
last_words() {
  local line
  line=$(kube -n "$1" logs "$2" ${3:+-c "$3"} --tail=20 --limit-bytes=16384 2>/dev/null | tr -d '\000-\011\013-\037\177' |
    grep -v '^ *$' | tail -n 1 | sed -E 's/((token|password|secret|key)[a-z_]*"?[=:] ?"?)[^ &"]+/\1…/gI' | cut -c 1-300) || return 0
  printf '; its log ends: %s' "$line"
}

# hindrance OBJECT PHASE WORDS UNREADY prints what hinders a pod, if more than time is needed. The events of the object say
# why; UNREADY is what is wrong when it runs.
hindrance() {
  local object=$1 phase=$2 words=$3 last
  case $words in
    '' | ContainerCreating:* | PodInitializing:*)
      if [[ $phase == Running ]]; then
        printf 'the pod runs, and %s' "$4"
        return
      fi
      last=$(last_event "$object")
      if [[ $last == 'Warning '* ]]; then
        unquoted "${last#Warning }"
      elif [[ $phase == Pending && -z $words ]]; then
        printf 'neither the scheduler nor the kubelet of its node does anything about its pod'
      fi
      ;;
    *Insufficient*) printf '%s; cards are held by: %s' "$(unquoted "$words")" "$(holders "$words")" ;;
    CrashLoopBackOff:*)
      unquoted "$words"
      last_words "$namespace" "$object"
      ;;
    *) unquoted "$words" ;;
  esac
}

# image_missing WORDS tells whether a pod waits for an image that does not come.
image_missing() {
  [[ $1 =~ ^(ErrImage|ImagePull|InvalidImageName|ImageInspect|RegistryUnavailable) ]]
}

# explain_pods prints the pods and the warnings about them.
explain_pods() {
  of_other_hosts
  kube -n "$namespace" get pods -o wide || true
  kube -n "$namespace" get events --field-selector=type=Warning --sort-by=.lastTimestamp | tail -n 15 || true
}

# namespace_there tells whether the namespace is there, or may be.
namespace_there() {
  local name
  name=$(kube get namespace "$namespace" --ignore-not-found -o name 2>/dev/null) || return 0
  [[ -n $name ]]
}

# delete_namespace lets it go, with all in it. Jobs first: from 1.22 on Kubernetes may keep the pods of a Job until its
# controller has counted them, and who deletes a namespace looks only every eight seconds whether that is so (source:
# finalizerEstimateSeconds in pkg/controller/namespace/deletion of k8s.io/kubernetes).
delete_namespace() {
  local -a flags=(--ignore-not-found --wait=false)
  if kubernetes_before 11; then flags=("${flags[0]}"); fi
  kubernetes_before 22 || kube -n "$namespace" delete jobs --all "${flags[@]}" >/dev/null 2>&1 || true
  kube delete namespace "$namespace" "${flags[@]}" >/dev/null 2>&1 || true
}

# clear_away WHOSE REASON deletes the namespace and returns when it is gone: cards are free only then.
clear_away() {
  local rounds=0
  namespace_there || return 0
  waiting "the end of the pods of $1"
  while namespace_there; do
    if [[ $((rounds % 5)) -eq 0 ]]; then delete_namespace; fi
    rounds=$((rounds + 1))
    [[ $(seconds_left) -gt 0 ]] || fail "$2" "the namespace $namespace of $1 does not go away"
    pause
  done
}
