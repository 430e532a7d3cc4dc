#!/usr/bin/env bash
# Finishes an installation that was interrupted.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

if dpkg_pending; then dpkg_repair; fi
