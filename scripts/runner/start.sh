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
        --setenv=PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin \
        --setenv=HOME=/root --setenv=LC_ALL=C.UTF-8 --setenv=LANGUAGE= \
        -- /bin/bash "$dir/runner.sh" </dev/null 2>&1 7>&-
}

# fence refuses a batch of a run that had the cluster before another one, which has begun its work here since: of a machine that
# slept, say, whose batch was on its way. Each lock on the cluster has a number, which only grows, and the batches that are begun
# under it carry it; the highest that came here is in the file `fence`, which goes with a reset. No number means another cluster's
# less: a run takes one that is greater than those of all hosts that it has looked at, whichever cluster they came from, so that a
# control plane that was installed anew, or from a copy of its disk, is behind for no longer than until the next run looks.
fence() {
    local base=${dir%/run/*} mine seen=0
    if [[ ! -e $dir/fence || -e $dir/started ]]; then return; fi
    mine=$(<"$dir/fence")
    exec 6<"$base/run"
    flock 6
    if [[ -s $base/fence ]]; then seen=$(<"$base/fence"); fi
    if ((mine > seen)); then
        cp "$dir/fence" "$dir/fence.new"
        sync -d "$dir/fence.new"
        mv "$dir/fence.new" "$base/fence"
        sync -d "$base"
    fi
    exec 6<&-
    if ((mine < seen)); then refuse; fi
}

# refuse says for the batch that it failed, and ends.
refuse() {
    local ids=("$dir"/steps/*/id) id
    id=$(<"${ids[0]}")
    rm -rf "$dir"
    printf 'D\t%s\t1\t0\tHOST_BUSY\t%s\nE\t1\n' "$id" 'another run has taken the cluster since this one had it, and has begun its work here: nothing of this one begins any more'
    exit
}

# A host that goes down starts nothing any more. The connection ends with it, and the batch is started after the boot.
if [[ $(systemctl is-system-running 2>/dev/null) == stopping ]]; then
    exec sleep 600
fi

fence
exec 7>>"$dir/following" # follow.sh keeps it, see there
flock --shared 7
if ! problem=$(start) && [[ ! -e $dir/started ]] && ! systemctl --quiet is-active "$unit"; then
    rm -rf "$dir"
    printf 'cannot start the unit %s: %s\n' "$unit" "$problem" >&2
    exit 1
fi
exec bash "$dir/follow.sh" "$batch" 0
