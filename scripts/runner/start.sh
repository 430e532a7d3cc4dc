#!/bin/bash
# Starts the batch this script lies in as a transient systemd unit, then follows it. Nothing but events goes to stdout.
# Starting a batch twice is harmless: the runner works only once, the second caller just follows.
set -euo pipefail

dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
batch=${dir##*/}
unit=kgpu-$batch

start() {
    systemd-run --quiet --no-ask-password --collect --unit="$unit" --description="kgpu batch $batch" \
        --property=Type=exec \
        --property=KillMode=control-group --property=SendSIGKILL=yes --property=TimeoutStopSec=15s \
        --setenv=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        --setenv=HOME=/root --setenv=LC_ALL=C.UTF-8 \
        -- /bin/bash "$dir/runner.sh" </dev/null 2>&1 7>&-
}

# A host that goes down starts nothing any more. The connection ends with it, and the batch is started after the boot.
if [[ $(systemctl is-system-running 2>/dev/null) == stopping ]]; then
    exec sleep 600
fi

exec 7>>"$dir/following" # follow.sh keeps it, see there
flock --shared 7
if ! problem=$(start) && [[ ! -e $dir/started ]] && ! systemctl --quiet is-active "$unit"; then
    rm -rf "$dir"
    printf 'cannot start the unit %s: %s\n' "$unit" "$problem" >&2
    exit 1
fi
exec bash "$dir/follow.sh" "$batch" 0
