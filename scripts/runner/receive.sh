#!/bin/bash
# receive.sh DIRECTORY BATCH: makes DIRECTORY/run/BATCH of the tar.gz on stdin, and starts that batch. It is there complete and
# on the disk, or not at all. One that is there already was sent before: it stays as it is, because its runner may have
# removed the secrets in it.
set -euo pipefail
umask 077

base=$1
batch=$2
runs=$base/run
dir=$runs/$batch

# unpack: whoever else is at it may be first.
unpack() {
    local new
    new=$(mktemp --directory "$runs/.$batch.XXXXXX") &&
        tar -xmzf - -C "$new" &&
        find "$new/$batch" \( -type f -o -type d \) -exec sync -d {} + &&
        { mv --no-target-directory "$new/$batch" "$dir" || [[ -e $dir ]]; }
}

# usage says where the room went: it may be what was missing.
usage() {
    df -h "$base"
    timeout 20 du -xsh /home /var/cache/apt /var/lib/containerd /var/lib/docker /var/lib/kubelet /var/log 2>/dev/null | sort -rh | head -n 3
} >&2

if [[ -e $dir ]]; then
    cat >/dev/null
else
    status=0
    { mkdir -p "$runs" && unpack; } || status=$?
    rm -rf "$runs/.$batch".*
    if ((status != 0)); then
        usage || :
        exit "$status"
    fi
    sync -d "$runs" "$base" "${base%/*}"
fi
exec bash "$dir/start.sh"
