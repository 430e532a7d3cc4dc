# shellcheck shell=bash
# The ways of a host to the pods of others, as it has them now.

# reaches ADDRESS PORT prints reached or silent. A port that is refused is one that was reached.
reaches() {
  local said
  # shellcheck disable=SC2016 # the inner shell expands
  if said=$(timeout -k 1 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1) || [[ $said == *refused* ]]; then
    printf 'reached'
  else
    printf 'silent'
  fi
}

# pod_network_ways prints whether the host reaches the next one of flannel's, in a ring, and the cluster's DNS.
pod_network_ways() {
  local subnet='' key value peer dns
  while IFS='=' read -r key value; do
    [[ $key != FLANNEL_SUBNET ]] || subnet=$value
  done 2>/dev/null </run/flannel/subnet.env
  if [[ $subnet =~ ^[0-9./]+$ ]]; then
    printf 'pod-subnet=%s\n' "$subnet"
    peer=$({
      printf '%s own\n' "${subnet%/*}"
      timeout 5 ip -4 -o route show table main 2>/dev/null | sed -nE 's/^.* via ([0-9.]+) dev flannel\..*$/\1 peer/p'
    } | sort -t . -k 1,1n -k 2,2n -k 3,3n -k 4,4n | awk '$2 == "own" { own = 1; next } { if (own) { next_one = $1; exit } if (first == "") first = $1 } END { print next_one == "" ? first : next_one }')
    [[ -z $peer ]] || printf 'pod-peer=%s %s\n' "$peer" "$(reaches "$peer" 9)"
  fi
  dns=$(awk '/^clusterDNS:/ { list = 1; next } list { print $2; exit }' /var/lib/kubelet/config.yaml 2>/dev/null)
  [[ ! $dns =~ ^[0-9.]+$ ]] || printf 'dns=%s %s\n' "$dns" "$(reaches "$dns" 53)"
}
