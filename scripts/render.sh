#!/usr/bin/env bash
# Runs the steps that lie beside it and that the file of its own name, ending in .steps, lists: in order, as `kgpu up` would,
# in a systemd unit, with the ledger that `kgpu reset` plays backwards. Root runs it, with bash. It may be run again, after a
# failure, a lost connection or a reboot: what is done already is not done twice.
#
# Credentials to join with are in join.env beside it: the control plane's run writes them, the workers' read them.
set -euo pipefail
umask 077

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
run=$(basename "${BASH_SOURCE[0]}" .sh)
base=/var/lib/kgpu
batch=by-hand-$(date --utc +%Y%m%d-%H%M%S)-$$
work=$base/run/$batch
join=$here/join.env

stop() {
  printf '%s\n' "$*" >&2
  exit 1
}

# credential NAME prints what join.env says of it.
credential() {
  local text
  text=$(sed -n "s/^$1=//p" "$join")
  case $1 in
    token) [[ $text =~ ^[a-z0-9]{6}\.[a-z0-9]{16}$ ]] ;;
    ca_hash) [[ $text =~ ^sha256:[0-9a-f]{64}$ ]] ;;
    certificate_key) [[ $text =~ ^[0-9a-f]{64}$ ]] ;;
    encryption) [[ $text =~ ^[A-Za-z0-9+/]+=*$ ]] ;;
  esac || stop "$join has no good $1: the run of the control plane that makes a token writes it anew"
  printf '%s' "$text"
}

# fill STEP puts the credentials where the step's values name them.
fill() {
  local value text name credential
  for value in "$1"/values/*; do
    text=$(cat -- "$value" && printf .)
    while IFS= read -r name; do
      credential=$(credential "$name")
      text=${text//"@$name@"/$credential}
    done <"$1/late"
    printf '%s' "${text%.}" >"$value"
  done
}

# steps prints the folders of the steps.
steps() {
  local step
  while IFS= read -r step; do
    if [[ -e $here/$step/late && ! -e $join ]]; then
      stop "there is no $join: copy it here from the control plane's folder"
    fi
    printf '%s\n' "$step"
  done <"$here/$run.steps"
}

# pack makes a batch of the steps, as kgpu's own come to a host.
pack() {
  local step number=0 dir list
  list=$(steps)
  mkdir -p "$work/steps"
  cp -- "$here"/kgpu/* "$work"
  printf '%s@%s\n' "${SUDO_USER:-root}" "$(uname -n)" >"$work/by"
  while IFS= read -r step; do
    number=$((number + 1))
    dir=$(printf '%s/steps/%03d' "$work" "$number")
    cp -R --preserve=mode -- "$here/$step" "$dir"
    if [[ -e $dir/late ]]; then fill "$dir"; fi
  done <<<"$list"
}

# follow starts the batch and tells what it does. It keeps the credentials that the batch made.
follow() {
  local kind step text status=1 code reason detail
  while IFS=$'\t' read -r kind step text; do
    case $kind in
      B) printf '== %s\n' "$step" ;;
      L) printf '   %s\n' "$text" ;;
      W) printf '   waiting for %s\n' "$text" ;;
      '!') printf '   warning: %s\n' "$text" ;;
      O) if [[ $step == cluster/token ]]; then printf '%s=%s\n' "${text%%$'\t'*}" "$(base64 --decode <<<"${text#*$'\t'}")" >>"$work/join.env"; fi ;;
      D)
        IFS=$'\t' read -r code _ reason detail <<<"$text"
        if [[ $code != 0 ]]; then printf '%s failed: %s [%s]\n' "$step" "$detail" "$reason" >&2; fi
        ;;
      E) status=$step ;;
    esac
  done < <(bash "$work/start.sh")
  return "$status"
}

# tidy takes the credentials out of what is left of the batch. One that is still at work needs what it has.
tidy() {
  rm -f "$work/join.env"
  if [[ -e $work/result ]]; then
    sed -i '/^O\t/d' "$work/events"
  elif [[ ! -e $work/started ]]; then
    rm -rf "$work"
  fi
}

[[ $EUID == 0 ]] || stop "run this as root: sudo bash ${BASH_SOURCE[0]}"
[[ -d /run/systemd/system ]] || stop 'this host does not run systemd'
[[ -z ${1-} ]] || stop "${BASH_SOURCE[0]} takes no arguments"

trap tidy EXIT
pack
trap 'stop "the steps go on without anybody who looks, in the unit kgpu-$batch; when it has ended, run $run again"' HUP INT TERM
follow || stop "$run did not come to its end; when the cause is mended, run it again"
if [[ -e $work/join.env ]]; then mv -f "$work/join.env" "$join"; fi
if [[ -e $here/$run.last ]]; then rm -f "$join"; fi
cat "$here/$run.next"
