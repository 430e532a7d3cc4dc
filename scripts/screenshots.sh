#!/usr/bin/env bash
# screenshots.sh [RUN]: draws a run with kgpu runs timeline and takes pictures of the page, in light and in dark, for the README.
# RUN is a run's folder or a recorded stream of events; without one it is the run that the tests of the timeline have.
# It needs go and Chromium (Debian: chromium, fonts-dejavu-core).
set -euo pipefail
cd "$(dirname "$0")/.."

run=${1:-bootstrap/records/timeline/testdata/three.jsonl}
chromium=${CHROMIUM:-chromium}
into=docs/images
size=1400,1130

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -f "$run" ]; then # a stream alone does not say which cluster it is
  mkdir -p "$work/lab/run"
  cp "$run" "$work/lab/run/events.jsonl"
  run=$work/lab/run
fi
mkdir -p "$into"
go run . runs timeline "$run/" --file "$work/page.html"
for theme in dark=0 light=1; do
  picture=$into/timeline-${theme%=*}.png
  "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --blink-settings=preferredColorScheme="${theme#*=}" --window-size="$size" --screenshot="$picture" "file://$work/page.html" 2>"$work/log" ||
    {
      cat "$work/log" >&2
      exit 1
    }
  echo "$picture"
done
