#!/bin/bash
# follow.sh BATCH OFFSET: prints the batch's events from this byte on until the batch ends. Two more lines may follow them:
#   N  the batch was never started
#   X  its process is gone without having ended it (the host went down, or the runner was killed)
set -euo pipefail

batch=$1
offset=$2
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../$batch" && pwd)
cd "$dir"

# A runner that removes this directory as its last act waits until those who come now have opened what they read.
if ! { : >&7; } 2>/dev/null; then
    exec 7>>following
    flock --shared 7
fi

while [[ ! -e started ]]; do
    if ! systemctl --quiet is-active "kgpu-$batch" && [[ ! -e started ]]; then
        echo N
        exit 0
    fi
    sleep 0.05
done

exec 5<events 6<alive 7>&-

# The runner holds `alive` while it lives, also across a reuse of its process ID; tail ends with the one that waits for it.
flock --shared 6 &
tail --bytes="+$((offset + 1))" --follow --sleep-interval=0.05 --pid=$! <&5

# A batch that made the host forget everything took its directory along, after its last event.
if [[ -e events && $(tail --lines=1 events) != E$'\t'* ]]; then
    printf '\nX\n'
fi
