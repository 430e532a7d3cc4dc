#!/bin/bash
# follow.sh BATCH OFFSET: prints the batch's events from this byte on until the batch ends. Two more lines may follow them:
#   N  the batch was never started
#   X  its process is gone without having ended it (the host went down, or the runner was killed)
set -euo pipefail

batch=$1
offset=$2
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../$batch" && pwd)
cd "$dir"

while [[ ! -e started ]]; do
    if ! systemctl --quiet is-active "kgpu-$batch" && [[ ! -e started ]]; then
        echo N
        exit 0
    fi
    sleep 0.05
done

# The runner holds `alive` while it lives, also across a reuse of its process ID; tail ends with the one that waits for it.
flock --shared alive true &
tail --bytes="+$((offset + 1))" --follow --sleep-interval=0.05 --pid=$! events

# A batch that made the host forget everything took its directory along, after its last event.
if [[ -e events && $(tail --lines=1 events) != E$'\t'* ]]; then
    printf '\nX\n'
fi
