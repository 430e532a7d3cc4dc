#!/usr/bin/env bash
# Waits until nodes and workloads are ready, has the cluster's DNS on more than one node, and proves that a pod on each node reaches one
# on the next, and the DNS.
# Values: nodes (a name a line), workloads (namespace/kind/name, a line each), network (none: nodes need only be there, somebody
# else brings their network), proof (the manifest of a pod for each node, called like it, in the namespace kgpu-network, with the
# host's programs; without it nothing is proven). A node that is not among those, and away, is not waited for: nor are its pods.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

mapfile -t nodes < <(value_lines nodes)
valid_nodes "${nodes[@]}"
mapfile -t workloads < <(value_lines workloads)
network=$(value_or network '')
namespace=kgpu-network

# The state of the cluster, a line each: the node's name, its conditions; or the workload, how many pods it wants and how many
# are available (ready for its minReadySeconds) and current.
state_template='{{range .items}}{{if eq .kind "Node"}}node {{.metadata.name}}{{range .status.conditions}}{{if eq .type "Ready"}} Ready={{.status}}{{end}}{{if eq .type "NetworkUnavailable" "DiskPressure" "MemoryPressure" "PIDPressure"}} {{.type}}={{.status}}{{end}}{{end}}
{{else if eq .kind "DaemonSet"}}{{.metadata.namespace}}/daemonset/{{.metadata.name}} {{.status.desiredNumberScheduled}} {{or .status.numberAvailable 0}} {{if eq (printf "%v" .metadata.generation) (printf "%v" .status.observedGeneration)}}{{.status.updatedNumberScheduled}}{{else}}0{{end}}
{{else}}{{.metadata.namespace}}/deployment/{{.metadata.name}} {{.spec.replicas}} {{or .status.availableReplicas 0}} {{or .status.updatedReplicas 0}}
{{end}}{{end}}'

# The cluster's DNS; and its pods that are ready and stay, a line each: the node's name and the pod's.
dns=kube-system/deployment/coredns
# shellcheck disable=SC2016 # Go's template
dns_template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{$pod := printf "%s %s" .spec.nodeName .metadata.name}}{{range .status.conditions}}{{if and (eq .type "Ready") (eq .status "True")}}{{$pod}}
{{end}}{{end}}{{end}}{{end}}'

# dns_pods prints those lines.
dns_pods() { kube -n kube-system get pods -l k8s-app=kube-dns -o go-template="$dns_template" 2>/dev/null; }

# spread_dns has the DNS survive a node: where all its pods are on one of several nodes, one of them goes, and comes on another, as
# the Deployment prefers. Those of the first node start before there is another one (kubernetes.io, "Creating Highly Available
# Clusters with kubeadm"). It fails where nothing is to be done.
spread=0 # so many pods of it are to be ready then
spread_dns() {
  local -a pods
  if [[ ${#nodes[@]} -lt 2 || " ${workloads[*]} " != *" $dns "* ]]; then return 1; fi
  mapfile -t pods < <(dns_pods)
  if [[ ${#pods[@]} -lt 2 || $(printf '%s\n' "${pods[@]%% *}" | sort -u | wc -l) -gt 1 ]]; then return 1; fi
  spread=${#pods[@]}
  kube -n kube-system delete pod "${pods[0]##* }" --wait=false >/dev/null || true # it works where it is, too
}

# pending prints what is not ready yet, separated by commas.
pending() {
  local state line node workload want ready updated least away=0
  local -a missing=()
  state=$(kube get nodes,daemonsets,deployments --all-namespaces -o go-template="$state_template" 2>/dev/null) || {
    printf 'the API server'
    return
  }
  for node in "${nodes[@]}"; do
    line=$(grep -m 1 -F "node $node " <<<"$state") || line=
    if [[ $network == none && -n $line ]]; then continue; fi
    if [[ $line != *' Ready=True'* || $line == *NetworkUnavailable=True* ]]; then
      missing+=("node $node")
    elif [[ $line =~ \ (Disk|Memory|PID)Pressure=True ]]; then
      missing+=("node $node (${BASH_REMATCH[1]}Pressure)")
    fi
  done
  while read -r _ node line; do
    if [[ " ${nodes[*]} " != *" $node "* && " $line " != *' Ready=True '* ]]; then away=$((away + 1)); fi
  done < <(grep '^node ' <<<"$state")
  for workload in "${workloads[@]}"; do
    read -r _ want ready updated <<<"$(grep -m 1 -F "$workload " <<<"$state")" || true
    # Every node has a pod of a DaemonSet, and may have one of a Deployment, also one that is away; when it is seen to be, its pods
    # are not ready any more. Those of a Deployment come elsewhere, after five minutes.
    least=$((${want:-0} - away))
    if [[ $least -lt 1 ]]; then least=1; fi
    if [[ ${ready:-0} -lt $least || ${updated:-0} -lt $least ]]; then missing+=("$workload (${ready:-0} of ${want:-?})"); fi
  done
  if [[ $spread -gt 0 && ${#missing[@]} -eq 0 ]]; then # the Deployment's status may be older than the pod's end
    ready=$(dns_pods | wc -l)
    if [[ $ready -lt $spread ]]; then missing+=("$dns ($ready of $spread)"); fi
  fi
  local IFS=,
  printf '%s' "${missing[*]}"
}

# When containers that ended before began again, a line each: the pod's namespace and name, and the time.
# shellcheck disable=SC2016 # Go's template
restarts_template='{{range .items}}{{$pod := printf "%s/%s" .metadata.namespace .metadata.name}}{{range .status.containerStatuses}}{{if .restartCount}}{{with .state.running}}{{$pod}} {{.startedAt}}
{{end}}{{end}}{{end}}{{end}}'

# settling prints a pod of the workloads that began again less than five seconds ago: in a crash loop, it is ready for a moment.
settling() {
  local pod began age workload now=
  while read -r pod began; do
    now=${now:-$(date +%s)} # of the answer: a pod may have begun after the question
    age=$((now - $(date -d "$began" +%s 2>/dev/null || echo 0)))
    for workload in "${workloads[@]}"; do
      if [[ $pod == "${workload%%/*}/${workload##*/}"-* && $age -ge 0 && $age -lt 5 ]]; then
        printf 'pod %s began again just now' "$pod"
        return
      fi
    done
  done < <(kube get pods --all-namespaces -o go-template="$restarts_template" 2>/dev/null)
}

# What keeps a pod from running, a line each: its name, the container (-: it has no node) and the words, quoted.
# shellcheck disable=SC2016 # Go's template
stuck_template='{{range .items}}{{$pod := .metadata.name}}{{range .status.conditions}}{{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{$pod}} - {{printf "%q" (or .message .reason "")}}
{{end}}{{end}}{{end}}{{range .status.initContainerStatuses}}{{$name := .name}}{{with .state.waiting}}{{if and (ne .reason "ContainerCreating") (ne .reason "PodInitializing")}}{{$pod}} {{$name}} {{if .message}}{{printf "%q" (printf "%s: %s" .reason .message)}}{{else}}{{printf "%q" .reason}}{{end}}
{{end}}{{end}}{{end}}{{range .status.containerStatuses}}{{$name := .name}}{{with .state.waiting}}{{if and (ne .reason "ContainerCreating") (ne .reason "PodInitializing")}}{{$pod}} {{$name}} {{if .message}}{{printf "%q" (printf "%s: %s" .reason .message)}}{{else}}{{printf "%q" .reason}}{{end}}
{{end}}{{end}}{{end}}{{end}}'

# What keeps pods off nodes, a line each: the node's name and the taint's key.
# shellcheck disable=SC2016 # Go's template
taints_template='{{range .items}}{{$node := .metadata.name}}{{range .spec.taints}}{{$node}} {{.key}}
{{end}}{{end}}'

# taints prints the taints of nodes, which newer schedulers do not name. Those of roles are there on purpose.
taints() {
  local node key
  local -A on=()
  while read -r node key; do
    case $key in '' | node-role.kubernetes.io/*) continue ;; esac
    on[$key]+="${on[$key]:+, }$node"
  done < <(kube get nodes -o go-template="$taints_template" 2>/dev/null)
  for key in "${!on[@]}"; do printf '; %s on %s' "$key" "$(cut -c 1-100 <<<"${on[$key]}")"; done
}

# stuck LATE prints what keeps a pod of the first workload that has one: a node under pressure, a taint, a program that fails.
# A node that is not ready explains pods without a node, too; a program that ends again and again may be why it is not. An API
# server that is away tells nothing.
stuck() {
  local item space pod container words which=''
  local -a items
  if [[ $1 != */*/* ]]; then return; fi
  if [[ $1 == *'node '* ]]; then which='[^ ]+ "CrashLoopBackOff'; fi
  IFS=, read -r -a items <<<"$1"
  for item in "${items[@]%% (*}"; do
    space=${item%%/*}
    read -r pod container words <<<"$(kube -n "$space" get pods -o go-template="$stuck_template" 2>/dev/null |
      grep -m 1 -E "^${item##*/}-[^ ]* $which")" || true
    if [[ -n $pod ]]; then
      words=$(unquoted "$words")
      words=${words%%. no new claims*}
      printf '; pod %s/%s: %s' "$space" "$pod" "${words%%. preemption:*}"
      if [[ $words == *taint* ]]; then taints; fi
      if [[ $words == CrashLoopBackOff* ]]; then last_words "$space" "$pod" "$container"; fi
      return
    fi
  done
}

# explain prints what the cluster says about what is not ready.
explain() {
  local node
  of_other_hosts
  for node in "${nodes[@]}"; do
    if [[ $1 == *"node $node"* ]]; then kube describe node "$node" | sed -n '/^Conditions:/,/^Addresses:/p'; fi
  done
  kube get pods --all-namespaces -o wide --field-selector=status.phase!=Running | tail -n 20
  kube get events --all-namespaces --field-selector=type=Warning --sort-by=.lastTimestamp | tail -n 15
}

# refuse_pressure LATE WORDS fails where nodes under pressure are all that is waited for. A kubelet keeps such a condition for
# minutes after it has made room: nobody waits for that.
refuse_pressure() {
  local pressed='node [^,( ]+ \([A-Za-z]+Pressure\)'
  if [[ ! $1 =~ ^$pressed(,$pressed)*$ ]]; then return 0; fi
  explain "$1" 2>&1 || true
  fail NODE_PRESSURE "not ready: $2"
}

# send_pods makes the pods of the proof, if the API server takes them now: they start as soon as their nodes have a network.
sent='' made=''
send_pods() {
  if [[ -n $sent || ! -f $KGPU_STEP/values/proof ]]; then return; fi
  if kube_apply "$KGPU_STEP/values/proof" >/dev/null 2>"$KGPU_STEP/errors"; then
    sent=yes made=yes
  elif grep -q 'may not change fields' "$KGPU_STEP/errors"; then # those of a run that was killed, of another version
    delete_namespace
  elif grep -q 'failed to download openapi' "$KGPU_STEP/errors"; then # kubectl asks for it first: the server is away
    return 0
  elif grep -qE 'error (parsing|validating)|is invalid|strict decoding|denied the request|violates PodSecurity' "$KGPU_STEP/errors"; then
    fail STEP_FAILED "$(not_taken)" # nor will it
  fi
}

not_taken() { printf 'the API server does not take the pods of the proof: %s' "$(tail -n 1 "$KGPU_STEP/errors" 2>/dev/null)"; }

# A line for each pod of the proof: its node, its address or - (ended: it will have none), and why, quoted.
# shellcheck disable=SC2016 # Go's template
proof_template='{{range .items}}{{.metadata.name}} {{if eq .status.phase "Failed" "Succeeded"}}ended {{printf "%q" (or .status.message .status.reason "it ended")}}{{else if and (eq .status.phase "Running") .status.podIP}}{{js .status.podIP}}{{else}}-{{end}}{{range .status.containerStatuses}}{{with .state.waiting}} {{printf "%q" (or .message .reason "")}}{{end}}{{end}}
{{end}}'

# What a pod does, with the host's programs: a pod that refuses a port is there. Nothing listens in the pods of the proof.
# shellcheck disable=SC2016 # the pod's shell expands
looks='
export PATH=/usr/bin:/bin LC_ALL=C
said=$(timeout 5 bash -c "exec 3<>/dev/tcp/\$0/9" "$0" 2>&1)
case $?:$said in
  0:* | *refused*) echo reached ;;
  124:*) echo "does not reach no answer within 5 s" ;;
  *) echo "does not reach ${said##*: }" ;;
esac
timeout 5 getent ahostsv4 kubernetes.default >/dev/null 2>&1
case $? in
  0) echo resolved ;;
  124) echo "does not resolve no answer within 5 s" ;;
  *) echo "does not resolve the name is not known" ;;
esac'

# look NODE ADDRESS keeps what the pod on the node says of another pod and of the DNS.
look() {
  local words
  if ! words=$(HOME=/var/lib/kgpu/kube-cache timeout 30 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=25s -n "$namespace" exec "$1" -- \
    /bin/bash -c "$looks" "$2" 2>&1 </dev/null); then
    words="does not reach kubectl exec: $(tail -n 1 <<<"$words" | cut -c 1-200)"
  fi
  tr -d '\000-\011\013-\037\177' <<<"$words" | cut -c 1-300 >"$KGPU_STEP/said.$1"
}

# lacks NODE DONE FAILED prints nothing where the pod on the node said that it is done, else what it said after FAILED.
lacks() {
  local words
  if grep -qx "$2" "$KGPU_STEP/said.$1"; then return; fi
  words=$(sed -n "s/^$3 //p" "$KGPU_STEP/said.$1" | head -n 1)
  printf '%s' "${words:-it does not tell why}"
}

# The pods of the proof, by their nodes: the address, or - and why there is none; and why the last pod on the node ended.
declare -A at=() last_end=()

# look_for_pods fills `at`. A pod that a kubelet evicted or refused never runs again, and one that somebody deleted does not come by
# itself: those are made anew, but not on a node under pressure, where they would end again.
look_for_pods() {
  local said node address words late anew='' answered=yes
  at=()
  said=$(kube -n "$namespace" get pods -o go-template="$proof_template" 2>/dev/null) || answered=
  while read -r node address words; do
    case $address in
      '') ;;
      ended)
        last_end[$node]=$words anew=yes
        kube -n "$namespace" delete pod "$node" --grace-period=0 --force --wait=false >/dev/null 2>&1 || true
        ;;
      *[!0-9.]*) at[$node]=-$words ;;
      *) at[$node]=$address ;;
    esac
  done <<<"$said"
  for node in "${nodes[@]}"; do
    if [[ -z ${at[$node]:-} ]]; then anew=$answered; fi
    if [[ ${at[$node]:--} == - ]]; then at[$node]=-${last_end[$node]:-it has no address}; fi
  done
  if [[ -n $anew ]]; then
    sent='' late=$(pending)
    refuse_pressure "$late" "${late//,/, }"
  fi
}

# prove returns when each pod has reached the next and the DNS. What a new network or DNS does not do at once it may do in
# a moment; a pod that has reached both has proven it.
prove() {
  local patience=60 began=0 node words next i reason late
  local -A proven=()
  local -a unreached unresolved looking
  if [[ ! -f $KGPU_STEP/values/proof ]]; then return; fi
  waiting "pods on ${#nodes[@]} nodes reach each other and the DNS"
  while :; do
    send_pods
    late=$(not_taken)
    if [[ -n $sent ]]; then
      look_for_pods
      late=
      for node in "${nodes[@]}"; do
        if [[ ${at[$node]} == -* ]]; then late="the pod of the proof on $node does not run: $(unquoted "${at[$node]#-}")" && break; fi
      done
    fi
    unreached=() unresolved=()
    if [[ -z $late ]]; then
      if [[ $began == 0 ]]; then began=$(uptime_seconds); fi
      looking=()
      for i in "${!nodes[@]}"; do
        node=${nodes[i]} next=${nodes[(i + 1) % ${#nodes[@]}]}
        if [[ -n ${proven[$node]:-} ]]; then continue; fi
        look "$node" "${at[$next]}" &
        looking+=("$i")
        if [[ $((${#looking[@]} % 16)) == 0 ]]; then wait; fi
      done
      wait
      for i in "${looking[@]}"; do
        node=${nodes[i]} next=${nodes[(i + 1) % ${#nodes[@]}]}
        words=$(lacks "$node" reached 'does not reach')
        if [[ -n $words ]]; then
          unreached+=("a pod on $node does not reach a pod on $next (${at[$next]}): $words")
          continue
        fi
        words=$(lacks "$node" resolved 'does not resolve')
        if [[ -n $words ]]; then unresolved+=("a pod on $node does not resolve kubernetes.default: $words") && continue; fi
        proven[$node]=yes
      done
      if [[ ${#unreached[@]} -eq 0 && ${#unresolved[@]} -eq 0 ]]; then break; fi
      if [[ $(($(uptime_seconds) - began)) -ge $patience || $(seconds_left) -le 0 ]]; then
        if [[ ${#unreached[@]} -gt 0 ]]; then fail NET_PODS_UNREACHABLE "$(some "${unreached[@]}")"; fi
        fail NET_DNS_BROKEN "$(some "${unresolved[@]}")"
      fi
    elif [[ $(seconds_left) -le 0 ]]; then
      explain_pods >&2 || true
      reason=${pull%%$'\t'*}
      fail "${reason:-NODE_NOT_READY}" "$late$(pull_text)"
    else
      watch_pulls -n "$namespace"
    fi
    pause
  done
}

# some WORDS... prints the first of many.
some() {
  local most=3 text=$1 i
  for ((i = 2; i <= $# && i <= most; i++)); do text+="; ${!i}"; done
  if [[ $# -gt $most ]]; then text+="; and $(($# - most)) more"; fi
  printf '%s' "$text"
}

# end_proof deletes the pods at once, so that nobody meets them, and lets the namespace go.
end_proof() {
  [[ -n $made ]] || return 0
  kube -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1 || true
  delete_namespace
}

# wait_ready returns when nothing is waited for any more.
wait_ready() {
  local late words why reason told='' rounds=0 kept=''
  while late=$(pending) && [[ -n ${late:=$(settling)} ]]; do
    send_pods
    watch_pulls --all-namespaces
    if [[ $((rounds % 5)) -eq 0 ]]; then kept=$(stuck "$late"); fi
    rounds=$((rounds + 1))
    words=$(pull_text)
    why="${late//,/, }${words:-$kept}"
    refuse_pressure "$late" "$why"
    if [[ $(seconds_left) -le 0 ]]; then
      explain "$late" 2>&1 || true
      reason=${pull%%$'\t'*}
      if [[ -z $reason && $late =~ \([A-Za-z]+Pressure\) ]]; then reason=NODE_PRESSURE; fi
      fail "${reason:-NODE_NOT_READY}" "not ready: $why"
    fi
    if [[ $why != "$told" ]]; then
      waiting "$why"
      told=$why
    fi
    pause
  done
}

if [[ -f $KGPU_STEP/values/proof ]]; then
  network_unproven
  trap end_proof EXIT
fi
wait_ready
if spread_dns; then wait_ready; fi
prove
rm -f /var/lib/kgpu/network-unproven
