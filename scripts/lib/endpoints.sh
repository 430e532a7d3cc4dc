# shellcheck shell=bash
# Where programs connect to. Nothing here writes, for scripts other than steps use it too.

# endpoint_state HOST PORT SECONDS prints open, refused (the machine answers, nothing listens), silent (no answer in time),
# unresolved or unreachable. The addresses of a name are tried side by side, as apt, curl and programs in Go try its two families: the way of
# one of them may lead nowhere. The resolver waits 5 s for each name server that is dead before it asks the next one, for either
# family (resolv.conf(5)).
endpoint_state() {
  local addresses address state best=unreachable
  addresses=$(timeout 25 getent ahosts "$1" 2>/dev/null | awk '!seen[$1]++ && ++of[$1 ~ /:/] <= 4 { print $1 }')
  if [[ -z $addresses ]]; then best=unresolved; fi
  while read -r state; do
    case $state:$best in
      open:*) best=open && break ;;
      refused:* | silent:unreachable) best=$state ;;
    esac
  done < <(
    exec 2>/dev/null # nobody waits for who is late
    for address in $addresses; do address_state "$address" "$2" "$3" & done
  )
  printf '%s\n' "$best"
}

# address_state ADDRESS PORT SECONDS does so for one address.
address_state() {
  local said status=0
  # shellcheck disable=SC2016 # the arguments of the inner bash
  said=$(timeout "$3" bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1 </dev/null) || status=$?
  case $status:$said in
    0:*) echo open ;;
    124:* | *'timed out'*) echo silent ;;
    *refused*) echo refused ;;
    *) echo unreachable ;;
  esac
}

# apt_proxy URL prints the proxy by which apt fetches from there; nothing: it takes none. As apt has it, that is what is set, or a
# program of the owner's finds out, for this host; else what is set for all, for https also what is set for http; else what the
# environment says. None is taken to a host of no_proxy, or where the word is no address, such as DIRECT or false. (methods/http.cc
# and apt-pkg/contrib/proxy.cc of apt; apt.conf(5), apt-transport-http(1))
apt_proxy() {
  local scheme=${1%%:*} host=${1#*//} proxy='' plain='' general='' every='' direct
  local -a directs=()
  [[ $scheme == http || $scheme == https ]] || return 0
  host=${host%%/*}
  host=${host##*@}
  proxy=$(/usr/lib/apt/apt-helper auto-detect-proxy "$scheme://$host/" 2>/dev/null </dev/null |
    sed -nE "s/^Using proxy '(.*)' for URL .*/\1/p") || true
  if [[ $host =~ ^(.*):[0-9]+$ ]]; then host=${BASH_REMATCH[1]}; fi
  host=${host#[}
  host=${host%]}
  eval "$(apt-config shell plain "Acquire::http::Proxy::$host" general "Acquire::$scheme::Proxy" every Acquire::http::Proxy)"
  proxy=${proxy:-${plain:-${general:-$every}}}
  if [[ $scheme == https ]]; then proxy=${proxy:-${https_proxy-}}; fi
  proxy=${proxy:-${http_proxy-}}
  IFS=, read -r -a directs <<<"${no_proxy-}"
  for direct in "${directs[@]}"; do
    if [[ -n $direct && ${host,,} == *"${direct,,}" ]]; then proxy=''; fi
  done
  if [[ $proxy == *://* ]]; then printf '%s\n' "$proxy"; fi
}
