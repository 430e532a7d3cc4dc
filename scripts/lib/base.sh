# shellcheck shell=bash
# What every step uses: its input, its output and how it fails. KGPU_STEP is the directory of the step.
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8 # packages' own scripts read files that are not in ASCII

# value NAME prints the input called NAME.
value() {
  [[ -f $KGPU_STEP/values/$1 ]] || fail STEP_FAILED "the step has no value called $1"
  show_file "$KGPU_STEP/values/$1"
}

# value_or NAME DEFAULT prints the input called NAME, or DEFAULT where it was not given.
value_or() {
  if [[ -f $KGPU_STEP/values/$1 ]]; then show_file "$KGPU_STEP/values/$1"; else printf '%s\n' "$2"; fi
}

# value_lines NAME prints the lines of the input called NAME, if it was given, without the empty ones.
value_lines() {
  local line
  [[ -f $KGPU_STEP/values/$1 ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    [[ -z $line ]] || printf '%s\n' "$line"
  done <"$KGPU_STEP/values/$1"
}

# show_file FILE prints a text as cat does, which would be a program more: steps have many inputs.
show_file() {
  local -a lines
  mapfile lines <"$1" || return
  printf '%s' "${lines[@]}"
}

# valid_nodes NAME... ends the step unless each can be the name of a node. Hosts tell their names themselves, and one that
# begins with a dash would be an option to kubectl.
valid_nodes() {
  local name
  for name in "$@"; do
    [[ ${#name} -le 253 && $name =~ ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$ ]] || fail HOST_NAME_INVALID "'$name' cannot be a node's name"
  done
}

# fail REASON DETAIL ends the step.
fail() {
  printf '%s\t%s\n' "$1" "$(one_line "$2")" >"$KGPU_STEP/failure"
  printf '%s\n' "$2" >&2
  exit 1
}

# fail_transient REASON DETAIL ends the step; the same step may work in a moment.
fail_transient() {
  printf '%s\t%s\n' "$1" "$(one_line "$2")" >"$KGPU_STEP/failure"
  printf '%s\n' "$2" >&2
  exit 75
}

one_line() {
  local text=${1//[$'\t\r']/ }
  printf '%s' "${text//$'\n'/; }"
}

# waiting WHAT says what the step waits for now; the runner makes an event of the line.
waiting() {
  printf 'W\t%s\n' "$(one_line "$1")"
}

# warning WHAT tells of something that stops nothing, which the operator should know; the runner makes an event of the line.
warning() {
  printf '!\t%s\n' "$(one_line "$1")"
}

# output NAME keeps standard input as the step's output called NAME.
output() {
  mkdir -p "$KGPU_STEP/out"
  (umask 077 && cat >"$KGPU_STEP/out/$1")
}

# uptime_seconds prints for how long the machine is up: time that nobody sets.
uptime_seconds() {
  local up
  read -r up _ </proc/uptime
  printf '%s\n' "${up%%.*}"
}
step_began=$(uptime_seconds)

# seconds_left prints how long the step may still take, less a margin to say what went wrong; what it waited for locks
# does not count. Nothing is left when somebody wants the batch to stop: what waits gives up, what works ends its work.
seconds_left() {
  local limit=600
  if [[ -e $KGPU_STEP/../../stop ]]; then
    echo 0
    return
  fi
  if [[ -f $KGPU_STEP/timeout ]]; then read -r limit <"$KGPU_STEP/timeout"; fi
  printf '%s\n' $((limit + $(lock_waited) - $(uptime_seconds) + step_began - 15))
}

# pause is what a loop does between two looks at the cluster. It takes a second; where a look takes longer than a quarter of
# that, four times the time of the look, and five seconds at most. A look is a tenth of a second of work for kubectl alone:
# who waits for a control plane that is busy must not be what keeps it busy. $paused is how many seconds it took.
pause_ended=
paused=1
pause() {
  local up hundredths=100
  read -r up _ </proc/uptime
  if [[ -n $pause_ended ]]; then hundredths=$((4 * (10#${up/./} - pause_ended))); fi
  if [[ $hundredths -lt 100 ]]; then hundredths=100; fi
  if [[ $hundredths -gt 500 ]]; then hundredths=500; fi
  paused=$((hundredths / 100))
  sleep "$paused.$((hundredths / 10 % 10))"
  read -r up _ </proc/uptime
  pause_ended=$((10#${up/./}))
}
