#!/usr/bin/env bash
# Turns swap off now and for good; undo turns it on again.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

swap_off
