#!/usr/bin/env bash
# Deletes the tokens that kgpu made for hosts to join with: this run's, and those that runs which were interrupted left. Values:
# certificates (yes: also what was laid out for control planes).
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
[[ $(value_or certificates no) == yes ]] || exit 0
# kubeadm ties the certificates to a token of their own.
laid_out=$(printf 'Proxy for managing TTL for the kubeadm-certs secret' | base64 -w 0)
mapfile -t secrets < <(awk -v ours="$laid_out" '$2 == ours { print $1 }' <<<"$tokens")
kube -n kube-system delete secrets --ignore-not-found kubeadm-certs "${secrets[@]}" ||
  fail_transient API_UNREACHABLE 'the API server does not delete the certificates for control planes'
