#!/bin/bash
# Stands in for systemctl: systemctl --quiet is-active UNIT, systemctl stop UNIT.
set -euo pipefail

unit=$RUNNERTEST_UNITS/${*: -1}
case $* in
"--quiet is-active "*) [[ -e $unit ]] && kill -0 "$(<"$unit")" 2>/dev/null ;;
"stop "*) [[ ! -e $unit ]] || pkill -KILL --session "$(<"$unit")" ;;
*) exit 1 ;;
esac
