#!/usr/bin/env bash
# Checks the scripts as hosts run them: the library and each step together.
set -euo pipefail
cd "$(dirname "$0")"
shellcheck lint.sh screenshots.sh facts.sh reach.sh pods.sh status.sh doctor.sh support.sh render.sh access/*.sh node/*.sh runner/*.sh

in_the_library() {
  { cat lib/*.sh; grep -v '^\. ' "$1"; } | shellcheck -s bash - || {
    echo "in the library with $1" >&2
    return 1
  }
}
export -f in_the_library
# shellcheck disable=SC2016 # bash of xargs expands it
printf '%s\0' steps/*.sh | xargs -0 -n 1 -P "$(nproc)" bash -o pipefail -c 'in_the_library "$0"'
