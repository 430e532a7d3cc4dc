#!/usr/bin/env bash
# Deletes an add-on: its namespace, with what is stored there, and the rights that it gave in all of the cluster. Values: those
# of an add-on.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

IFS=/ read -r namespace _ name <<<"$(value workload)"
wait_api
kube delete clusterrolebindings,clusterroles -l "app.kubernetes.io/name=$name,app.kubernetes.io/managed-by=kgpu"
clear_away "$(value title)" "$(value failed)"
