# shellcheck shell=bash
# Tells what kgpu does on this host, and changes nothing. It is read by `bash -s DIRECTORY SECONDS`, run by root; what
# follows it on standard input is a line every now and then. It prints
#   held | free        whether a run of kgpu holds the cluster here: at first and at every change
#   runs BATCH         of a batch that runs, once
#   ended BATCH        of one that had ended when it was seen first
#   looked             after the first look
# When its input ends it looks a last time and ends; so it does when nothing came for so many seconds.
set -euo pipefail

base=$1
silence=$2
pause=0.2 # seconds between two looks
state=
declare -A told

# held FILE: whether somebody has the lock on it. Others who only look may do so at the same time.
held() (
    { exec 6<"$1"; } 2>/dev/null || exit 1
    ! flock --shared --nonblock 6
)

look() {
    local now=free batch
    if held "$base/operator/lock"; then
        now=held
    fi
    if [[ $now != "$state" ]]; then
        echo "$now"
        state=$now
    fi
    for batch in "$base"/run/*/started; do
        batch=${batch%/started}
        if [[ -n ${told[${batch##*/}]-} || ! -e $batch/started ]]; then
            continue
        fi
        told[${batch##*/}]=yes
        # The runner holds `alive` while it lives.
        if held "$batch/alive"; then
            echo "runs ${batch##*/}"
        else
            echo "ended ${batch##*/}"
        fi
    done
}

# uptime_seconds prints for how long the machine is up: time that nobody sets.
uptime_seconds() {
    local up
    read -r up _ </proc/uptime
    echo "${up%%.*}"
}

watch() {
    local status heard
    heard=$(uptime_seconds)
    look
    echo looked
    while (($(uptime_seconds) - heard < ${silence%.*} + 1)); do
        status=0
        IFS= read -r -t "$pause" _ || status=$?
        if ((status == 0)); then
            heard=$(uptime_seconds)
        elif ((status <= 128)); then
            break
        fi
        look
    done
    look
}

watch; exit # on one line: bash has read no further, and what follows is not for bash
