#!/usr/bin/env bash
# Checks the scripts as hosts run them: the library and each step together.
set -euo pipefail
cd "$(dirname "$0")"
shellcheck lint.sh screenshots.sh facts.sh reach.sh pods.sh status.sh doctor.sh support.sh render.sh access/*.sh node/*.sh runner/*.sh
for step in steps/*.sh; do
  { cat lib/*.sh; grep -v '^\. ' "$step"; } | shellcheck -s bash - || {
    echo "in the library with $step" >&2
    exit 1
  }
done
