#!/usr/bin/env bash
# recording.sh: the first afternoon on the lab's hosts, as an asciinema file. `make recording` calls it.
set -euo pipefail
cd "$(dirname "$0")/../.."

lab=$PWD/scripts/lab/lab
recorder=$PWD/scripts/lab/cast.py
out=$PWD/docs/recording.cast
repository=$PWD

home=$(mktemp -d)
person=$HOME
finish() {
  local status=$?
  HOME=$person "$lab" destroy || status=1
  rm -rf "$home"
  exit "$status"
}
trap finish EXIT

echo "==> preparing the lab (cached after the first time)"
"$lab" prepare gpu
echo "==> booting 1 control plane and 2 workers with 2 and 1 cards (stand-ins: scripts/lab/REAL.md)"
"$lab" destroy
"$lab" up --workers 2 --gpus w1=2xA100 --gpus w2=1xT4
environment=$("$lab" env)
eval "$environment"

# A person's own folder: a key, machines that SSH knows, and nothing else.
install -d -m 700 "$home/.ssh"
install -m 600 "$KGPU_LAB_KEY" "$home/.ssh/id_ed25519"
install -m 600 "$KGPU_LAB_KNOWN_HOSTS" "$home/.ssh/known_hosts"
install -d "$home/bin"
install bin/kgpu "$home/bin/kgpu"
cp examples/lab.yaml "$home/lab.yaml"
export HOME=$home PATH=$home/bin:$PATH XDG_STATE_HOME=$home/state
unset SSH_AUTH_SOCK NO_COLOR KGPU_INVENTORY

echo "==> recording"
cd "$home"
python3 "$recorder" "$out" 100 30 <<'COMMANDS'
# Three machines that you can log in to. What are they?
0 kgpu init ubuntu@10.199.0.10 ubuntu@10.199.0.11 ubuntu@10.199.0.12
# These hosts have an internet of their own: its mirrors and keys are in another inventory.
0 cp lab.yaml inventory.yaml
2 kgpu plan
0 kgpu up
0,2 kgpu status
0,2 kgpu doctor
0 kgpu reset --yes
COMMANDS
cd "$repository"
echo "==> $out: asciinema play $out"
