#!/usr/bin/env bash
# Deletes the notebook, its token and what is stored in it.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

namespace=kgpu-notebook
wait_api
clear_away 'the notebook' NOTEBOOK_FAILED
