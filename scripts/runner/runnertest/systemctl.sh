#!/bin/bash
# Stands in for systemctl: systemctl --quiet is-active UNIT, systemctl stop UNIT, systemctl is-system-running (a file
# `stopping` among the units says that it goes down).
set -euo pipefail

unit=$RUNNERTEST_UNITS/${*: -1}
case $* in
"--quiet is-active "*) [[ -e $unit ]] && kill -0 "$(<"$unit")" 2>/dev/null ;;
is-system-running) if [[ -e $RUNNERTEST_UNITS/stopping ]]; then echo stopping; else echo running; fi ;;
"stop "*) [[ ! -e $unit ]] || pkill -KILL --session "$(<"$unit")" ;;
*) exit 1 ;;
esac
