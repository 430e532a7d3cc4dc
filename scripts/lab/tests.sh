#!/usr/bin/env bash
# tests.sh [-short]: runs the tests on the lab's hosts, three at a time where the machine has time for that, and beside them the lab's own,
# which mostly wait. Of those that failed, it says once more at the end why, without what the hosts logged.
set -uo pipefail
cd "$(dirname "$0")" || exit
log=$(mktemp) own=$(mktemp)
trap 'rm -f "$log" "$own"' EXIT

# What they test is outside of what the cache of results knows.
tests=(go test -v "$@" -vet=off -count=1 -p 1 -parallel 3 -timeout 80m)

mapfile -t packages < <(go list ./... | grep -v '/e2e$')
"${tests[@]}" "${packages[@]}" >"$own" 2>&1 &
"${tests[@]}" ./e2e 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
wait "$!" || status=1
tee -a "$log" <"$own"

# shellcheck disable=SC2016 # awk's variables
awk '
/^=== / { test = $3; lines = 0 }
/^ *--- FAIL: / { failed[$3] = 1 }
/^ *--- |^ok|^FAIL/ { lines = 0 }
/^ +[a-z_0-9]+_test\.go:[0-9]+: / { lines = $1 ~ /^dump_test\.go/ ? 0 : 25 }
lines > 0 && told[test]++ < 60 { why[test] = why[test] $0 "\n"; lines-- }
END { for (test in failed) if (test in why) printf "why %s failed:\n%s", test, why[test] }' "$log"
exit "$status"
