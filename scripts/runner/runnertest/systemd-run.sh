#!/bin/bash
# Stands in for systemd-run: the command runs in a session of its own; what it leaves behind ends with it, as with
# KillMode=control-group.
set -euo pipefail

unit=
environment=("RUNNERTEST_UNITS=$RUNNERTEST_UNITS")
while [[ $1 != -- ]]; do
    case $1 in
    --unit=*) unit=${1#--unit=} ;;
    --setenv=PATH=*) environment+=("PATH=$PATH") ;;
    --setenv=*) environment+=("${1#--setenv=}") ;;
    esac
    shift
done
shift

if ! mkdir "$RUNNERTEST_UNITS/$unit.lock" 2>/dev/null; then
    echo "Failed to start transient service unit: Unit $unit.service was already loaded or has a fragment file." >&2
    exit 1
fi
# shellcheck disable=SC2016 # the unit's own shell expands this
setsid env -i "${environment[@]}" bash -c '
    lock=$0
    "$@" || :
    rmdir "$lock"
    exec pkill -KILL --session $$
' "$RUNNERTEST_UNITS/$unit.lock" "$@" </dev/null &>/dev/null &
echo "$!" >"$RUNNERTEST_UNITS/$unit"
