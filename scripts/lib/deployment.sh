# shellcheck shell=bash
# What the steps of add-ons have in common. Their values: title (what messages call the add-on), workload (namespace/kind/name),
# failed (the reason ID of what the API server refuses, and of a Deployment that does not get ready).

patience=30 # seconds of pauses that something may hinder the pod; a pull that goes on hinders nothing
no_card=30  # the same for a card, which nobody is about to give back

# The generation of the Deployment, the one that was acted upon, how many pods there are of it, how many are ready, how many
# there are in all, and why there is none, quoted.
deployment_template='{{.metadata.generation}} {{or .status.observedGeneration 0}} {{or .status.updatedReplicas 0}} {{or .status.readyReplicas 0}} {{or .status.replicas 0}}
{{- range .status.conditions}}{{if and (eq .type "ReplicaFailure") (eq .status "True")}} {{.reason}}: {{printf "%q" .message}}{{end}}{{end}}'

# deployment_up STATE tells whether a Deployment has one pod, as it wants it, and that is ready.
deployment_up() {
  local wanted seen new ready all
  read -r wanted seen new ready all _ <<<"$1"
  [[ -n $wanted && $seen == "$wanted" && $new == 1 && $ready == 1 && $all == 1 ]]
}

# apply_addon FILE makes the objects of an add-on what a manifest says.
apply_addon() {
  kube_apply "$1" 2>"$KGPU_STEP/errors" ||
    fail_transient "$(value_or failed STEP_FAILED)" "the API server refuses $(value title): $(<"$KGPU_STEP/errors")"
}

# wait_deployment NAME waits until a Deployment in $namespace has its pod, whose label app.kubernetes.io/name is NAME. What
# does not get ready ends with give_up WHY POD PHASE WORDS, which the step defines: WHY may be empty, POD and PHASE "-".
wait_deployment() {
  local name=$1 still=0 before='' told='' title mine=app.kubernetes.io/name=$1 state pod phase words why last
  title=$(value title)
  while :; do
    state=$(kube -n "$namespace" get deployment "$name" -o go-template="$deployment_template" 2>/dev/null) || state=
    if deployment_up "$state"; then return; fi
    pod=- phase=- words=
    read -r _ pod phase words <<<"$(kube -n "$namespace" get pods -l "$mine" -o go-template="$pods_template" 2>/dev/null | tail -n 1)" || true
    if [[ -z $pod ]]; then
      pod=- phase=-
      read -r _ _ _ _ _ words <<<"$state" || true
    fi
    if [[ "$pod $phase" == "$before" ]]; then still=$((still + paused)); else still=0; fi
    before="$pod $phase"
    why=${words:-${phase/#-/no pod yet}}
    note_pulls "$words" -n "$namespace" -l "$mine"
    if [[ -n $pulls ]]; then
      why=$(pull_words "$pulls") # and not by turns what each try and each pause are called
    elif [[ $phase == Pending ]]; then
      last=$(last_event "$pod")
      if [[ -n $last ]]; then why=${last#* }; fi
    fi
    if [[ $why != "$told" ]]; then
      waiting "$title: $(unquoted "$why")"
      told=$why
    fi
    if [[ $still -ge $patience || $words == *"Insufficient $(resource)"* && $still -ge $no_card || $(seconds_left) -le 0 ]]; then
      why=$(hindrance "$pod" "$phase" "$words" "$title in it does not answer")
      if [[ -n $why || $(seconds_left) -le 0 ]]; then give_up "$why" "$pod" "$phase" "$words"; fi
    fi
    pause
  done
}
