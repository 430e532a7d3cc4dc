#!/usr/bin/env bash
# Deletes the tokens that kgpu made for workers to join with: this run's, and those that runs which were interrupted left.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# A line for each token's Secret: its name and what it is for, as base64.
tokens_template='{{range .items}}{{.metadata.name}} {{index .data "description"}}
{{end}}'

wait_api
tokens=$(kube -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o go-template="$tokens_template") ||
  fail_transient API_UNREACHABLE 'the API server does not tell which tokens there are'
ours=$(printf 'kgpu join' | base64)
mapfile -t secrets < <(awk -v ours="$ours" '$2 == ours { print $1 }' <<<"$tokens")
[[ ${#secrets[@]} -eq 0 ]] || kube -n kube-system delete secrets --ignore-not-found "${secrets[@]}" ||
  fail_transient API_UNREACHABLE 'the API server does not delete the tokens'
