# shellcheck shell=bash
# Downloads.

# fetch URL FILE [SHA256] downloads through the proxy that apt uses. What has another checksum may have been cut short or be
# out of an old cache: it is downloaded once more, past all caches, before it is refused.
fetch() {
  local url=$1 file=$2 sum=${3:-} shown got
  shown=$(sed -E 's#//[^/@]*@#//#' <<<"$url")
  fetch_part "$url" "$file.part" "$shown"
  if [[ -n $sum ]]; then
    read -r got _ < <(sha256sum "$file.part")
    if [[ $got != "${sum,,}" ]]; then
      echo "$shown has sha256 $got, expected ${sum,,}: downloading it once more"
      fetch_part "$url" "$file.part" "$shown" -H 'Cache-Control: no-cache'
      read -r got _ < <(sha256sum "$file.part")
    fi
    [[ $got == "${sum,,}" ]] || fail CHECKSUM_MISMATCH "$shown has sha256 $got, expected ${sum,,}"
  fi
  mv -f "$file.part" "$file"
}

# fetch_part URL FILE SHOWN ARG... downloads once, with more arguments for curl, or ends the step. URL and proxy may hold a
# password: they go to curl by standard input, and the URL is named as SHOWN.
fetch_part() {
  local url=$1 file=$2 shown=$3 status=0 answer host
  shift 3
  host=${shown#*//}
  host=${host%%[/:]*}
  # Who asks for TLS is not led away from it.
  if [[ $url == https:* ]]; then set -- --proto-redir =https "$@"; fi
  rm -f "$file"
  answer=$({
    curl_option url "$url"
    curl_option proxy "$(apt_proxy "$url")" # none: none of the environment's either
    curl_option noproxy ''
  } | curl -fsSL --retry 3 --retry-max-time 60 --retry-connrefused --connect-timeout 15 --speed-limit 1000 --speed-time 60 \
    -w '%{http_code}' -o "$file" -K - "$@") || status=$?
  case $status:$answer in
    0:*) ;;
    1:3??) fail REPO_UNREACHABLE "$shown leads to an address without TLS" ;;
    5:*) fail_transient NET_NAME_UNRESOLVED "$shown: the name of the proxy does not resolve" ;;
    6:*) fail_transient NET_NAME_UNRESOLVED "$shown: the name $host does not resolve" ;;
    22:408 | 22:429 | 22:5??) fail_transient REPO_UNREACHABLE "$shown: the server answers $answer" ;;
    22:401 | 22:403 | 22:407) fail REPO_UNREACHABLE "$shown: the server answers $answer" ;;
    22:*) fail REPO_UNREACHABLE "$shown is not there (${answer:-no answer})" ;;
    23:*) fail HOST_DISK_FULL "no space to download $shown to $file" ;;
    60:*) fail REPO_UNREACHABLE "$shown: the certificate of the server is not trusted" ;;
    *) fail_transient REPO_UNREACHABLE "$shown: curl ended with status $status" ;;
  esac
}

# curl_option NAME VALUE prints a line of a curl configuration.
curl_option() {
  local value=${2//\\/\\\\}
  printf '%s = "%s"\n' "$1" "${value//\"/\\\"}"
}
