# shellcheck shell=bash
# Downloads.

# fetch URL FILE [SHA256] downloads through the proxy that apt uses. URL and proxy may hold a password: they go to curl
# by standard input and are named without it.
fetch() {
  local url=$1 file=$2 sum=${3:-} shown status=0 got
  shown=$(sed -E 's#//[^/@]*@#//#' <<<"$url")
  rm -f "$file.part"
  {
    curl_option url "$url"
    fetch_proxy "$url"
  } | curl -fsSL --retry 3 --retry-connrefused --connect-timeout 15 --speed-limit 1000 --speed-time 60 -o "$file.part" -K - || status=$?
  case $status in
    0) ;;
    22) fail REPO_UNREACHABLE "$shown is not there" ;;
    23) fail HOST_DISK_FULL "no space to download $shown" ;;
    60) fail REPO_UNREACHABLE "$shown: the certificate of the server is not trusted" ;;
    *) fail_transient REPO_UNREACHABLE "$shown: curl ended with status $status" ;;
  esac
  if [[ -n $sum ]]; then
    read -r got _ < <(sha256sum "$file.part")
    [[ $got == "${sum,,}" ]] || fail CHECKSUM_MISMATCH "$shown has sha256 $got, expected ${sum,,}"
  fi
  mv -f "$file.part" "$file"
}

# curl_option NAME VALUE prints a line of a curl configuration.
curl_option() {
  local value=${2//\\/\\\\}
  printf '%s = "%s"\n' "$1" "${value//\"/\\\"}"
}

# fetch_proxy URL prints the proxy option for URL, from apt's configuration.
fetch_proxy() {
  local scheme=${1%%:*} host proxy direct
  host=${1#*//}
  host=${host%%/*}
  host=${host##*@}
  host=${host%:*}
  eval "$(apt-config shell direct "Acquire::$scheme::Proxy::$host" proxy "Acquire::$scheme::Proxy" plain Acquire::http::Proxy)"
  # shellcheck disable=SC2154 # set by the line above
  proxy=${direct:-${proxy:-${plain:-}}}
  if [[ -n $proxy && $proxy != DIRECT ]]; then curl_option proxy "$proxy"; fi
}
