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

# The runner holds `alive` while it lives, also across a reuse of its process ID. Who finds it free reads a last time. Not
# for tail: the one of Ubuntu 25.10 and later (uutils) does not follow its standard input. perl is on every host, dpkg needs it.
# shellcheck disable=SC2016 # perl expands
perl -e '
    open my $events, "<&=5" and open my $alive, "<&=6" or die;
    sysseek $events, $ARGV[0], 0;
    $| = 1;
    while (1) {
        my $over = flock $alive, 1 | 4; # LOCK_SH | LOCK_NB
        while (sysread $events, my $read, 65536) { print $read or die }
        last if $over;
        select undef, undef, undef, 0.05;
    }' "$offset"

# A batch that made the host forget everything took its directory along, after its last event.
if [[ -e events && $(tail --lines=1 events) != E$'\t'* ]]; then
    printf '\nX\n'
fi
