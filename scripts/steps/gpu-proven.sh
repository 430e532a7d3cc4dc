#!/usr/bin/env bash
# Remembers that the cards were proven: see proof_owed.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

rm -f /var/lib/kgpu/unproven
