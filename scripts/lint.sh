#!/usr/bin/env bash
# Checks the scripts as hosts run them: the library and each step together.
set -euo pipefail
cd "$(dirname "$0")"
shellcheck environment.sh lint.sh fuzz.sh screenshots.sh deprecated.sh facts.sh reach.sh virtual-ip.sh pods.sh status.sh doctor.sh support.sh render.sh access/*.sh node/*.sh runner/*.sh

# The names that the library has for all of a step.
globals=$(sed -nE 's/^(declare -[aA] )?([a-z_]+)=.*/\2/p' lib/*.sh | sort -u)

# own STEP prints a step without the line that reads the library.
own() { grep -v '^\. ' "$1"; }

# alone STEP checks a step with those names of the library that it has: nothing that another step sets hides what this one does not.
alone() {
  local name names status=0
  names=$(grep -owFf <(echo "$globals") "$1" | sort -u) || true
  {
    for name in $names; do printf '%s=\n' "$name"; done
    own "$1"
    for name in $names; do printf ': "$%s"\n' "$name"; done
  } | shellcheck -s bash - || status=$?
  [[ $status -eq 0 ]] || echo "in $1; the lines of $(wc -w <<<"$names") names come before its own" >&2
  return "$status"
}

# together checks the library with all steps, which takes a tenth of the time of one after the other. A name may be a list to
# one step and a word to the next.
together() {
  local step n=0 calls=
  {
    cat lib/*.sh
    for step in steps/*.sh; do
      n=$((n + 1))
      printf 'step_%s() { # %s\n' "$n" "$step"
      own "$step"
      echo '}'
      calls+="$n) step_$n ;; "
    done
    # shellcheck disable=SC2016 # the shell that is checked would expand it
    printf 'case $1 in %s esac\n' "$calls"
  } | shellcheck -s bash -e SC2128,SC2178 -
}

# A process for each CPU: each is busy for half a second a step.
export globals
export -f own alone together
{
  echo together
  printf 'alone %s\n' steps/*.sh
} | xargs -P "$(nproc)" -I{} bash -euo pipefail -c '{}'
