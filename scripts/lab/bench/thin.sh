#!/usr/bin/env bash
# Makes thin hosts out of the host on which it runs. Arguments: NAME ADDRESS of each. Prints ADDRESS and public host key
# of each. Their sshds, and so the sessions too, have mounts and a host name of their own, and end with the host: among
# the mounts, what says which node a host is, a kubelet's certificate (nothing signs in with it) and a ledger that does
# not know the node's UID.
set -euo pipefail
while [[ $# -gt 0 ]]; do
  name=$1 address=$2
  shift 2
  dir=/run/thin/$name
  mkdir -p "$dir"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
  tr -d - </proc/sys/kernel/random/uuid >"$dir/machine-id"
  { cat /etc/hosts && echo "127.0.1.1 $name"; } >"$dir/hosts"
  openssl req -x509 -newkey ed25519 -noenc -keyout /dev/null -out "$dir/kubelet.pem" -days 365 \
    -subj "/O=system:nodes/CN=system:node:$name" 2>/dev/null
  cp -a /var/lib/kgpu/ledger "$dir/ledger"
  sed -i 2d "$(grep -rlx join-done "$dir/ledger" --include=args)"
  ip address add "$address/24" dev eth0
  # shellcheck disable=SC2016 # expanded by the inner bash
  systemd-run --quiet --unit "$name" --property Type=notify --working-directory "$dir" \
    unshare --mount --uts bash -ec '
      hostname "$1"
      mount --bind machine-id /etc/machine-id
      mount --bind hosts /etc/hosts
      mount --bind kubelet.pem /var/lib/kubelet/pki/kubelet-client-current.pem
      mount --bind ledger /var/lib/kgpu/ledger
      exec /usr/sbin/sshd -D -o ListenAddress="$2" -o Port=2222 -o HostKey="$PWD/key" -o PidFile=none
    ' thin "$name" "$address"
  read -r kind key _ <"$dir/key.pub"
  echo "$address $kind $key"
done
