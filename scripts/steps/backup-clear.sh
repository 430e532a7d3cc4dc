#!/usr/bin/env bash
# Removes what a backup took of this host, which is in the archive by now.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

rm -rf /var/lib/kgpu/backup
