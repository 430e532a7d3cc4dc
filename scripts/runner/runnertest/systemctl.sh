#!/bin/bash
# Stands in for systemctl: systemctl --quiet is-active UNIT.
[[ $1 == --quiet && $2 == is-active && -e $RUNNERTEST_UNITS/$3 ]] && kill -0 "$(<"$RUNNERTEST_UNITS/$3")" 2>/dev/null
