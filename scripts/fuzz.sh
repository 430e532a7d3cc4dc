#!/usr/bin/env bash
# fuzz.sh SECONDS|Nx: runs every fuzz target of the module, one after the other: all of them share the seconds, or each has N
# executions. It prints how often each was executed, and fails where one finds something or is hardly executed at all.
# Where a number of executions is asked for, Go builds nothing for fuzzing, which takes longer than the executions, and so they are
# not led by what each input reaches.
# Inputs that found something are written to testdata/fuzz, which belongs into a commit; all others stay in Go's cache.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.."

amount=${1:?how long, in seconds, or how often, as 1000x}
mapfile -t targets < <(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' ':!scripts/lab' | sort)
count=${#targets[@]}
((count > 0)) || { echo 'there are no fuzz targets' >&2; exit 1; }
if [[ $amount == *x ]]; then
  each='' floor=${amount%x}
else
  each=$((amount / count))s floor=$((50 * amount / count)) # the slowest has some hundreds in a second, on two cores
fi

cache=$(go env GOCACHE)/fuzz/$(go list -m)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=
for target in "${targets[@]}"; do
  folder=$(dirname "${target%%:*}") name=${target##* } time=$each
  if [[ $amount == *x ]]; then # Go counts the inputs that it has kept from earlier, which it executes first
    kept=("$cache/$folder/$name"/*)
    time=$((floor + ${#kept[@]}))x
  fi
  fuzz=(-fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 5x "./$folder")
  if [[ $amount == *x ]]; then
    fuzz=(-v "./$folder" -args "-test.fuzz=^$name\$" "-test.fuzztime=$time" -test.fuzzminimizetime=5x "-test.fuzzcachedir=$cache/$folder")
  fi
  if ! go test -vet=off -run '^$' "${fuzz[@]}" >"$log" 2>&1; then
    failed=yes
    cat "$log"
  fi
  executions=$(sed -nE 's/^fuzz: elapsed: .*, execs: ([0-9]+) .*/\1/p' "$log" | tail -n 1)
  printf '%9d  %s.%s\n' "${executions:=0}" "$folder" "$name"
  if ((executions < floor)); then
    failed=yes
    echo "that is less than $floor" >&2
  fi
done
[[ -z $failed ]]
