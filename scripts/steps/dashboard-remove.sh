#!/usr/bin/env bash
# Deletes the dashboard and the rights of its users.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# shellcheck disable=SC2034 # the library uses it
namespace=kgpu-dashboard
mine=app.kubernetes.io/name=headlamp,app.kubernetes.io/managed-by=kgpu

wait_api
kube delete clusterrolebindings,clusterroles -l "$mine"
clear_away 'the dashboard' DASHBOARD_FAILED
