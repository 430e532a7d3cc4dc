#!/usr/bin/env bash
# Makes thin hosts out of the host on which it runs. Arguments: NAME ADDRESS of each. Prints ADDRESS and public host key
# of each. Their sshds, and so the sessions too, have mounts and a host name of their own, and end with the host.
set -euo pipefail
while [[ $# -gt 0 ]]; do
  name=$1 address=$2
  shift 2
  dir=/run/thin/$name
  mkdir -p "$dir"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
  tr -d - </proc/sys/kernel/random/uuid >"$dir/machine-id"
  { cat /etc/hosts && echo "127.0.1.1 $name"; } >"$dir/hosts"
  ip address add "$address/24" dev eth0
  # shellcheck disable=SC2016 # expanded by the inner bash
  systemd-run --quiet --unit "$name" --property Type=notify --working-directory "$dir" \
    unshare --mount --uts bash -ec '
      hostname "$1"
      mount --bind machine-id /etc/machine-id
      mount --bind hosts /etc/hosts
      exec /usr/sbin/sshd -D -o ListenAddress="$2" -o Port=2222 -o HostKey="$PWD/key" -o PidFile=none
    ' thin "$name" "$address"
  read -r kind key _ <"$dir/key.pub"
  echo "$address $kind $key"
done
