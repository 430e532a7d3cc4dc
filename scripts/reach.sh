# shellcheck shell=bash
# Tells which endpoints this host reaches, and how apt can install a driver: after the script, its input has a line "HOST PORT" for
# each endpoint, and a line "way WAY LIBRARY META PACKAGE..." for each way to the driver (lib/driver-ways.sh), best first. It prints
# reach=HOST PORT STATE lines between kgpu-reach=1 and end=1, where STATE is open, refused (the machine answers, nothing
# listens), silent (no answer in time), unresolved or unreachable; and a line "way=WAY yes KERNEL" for the first way that is one,
# "way=WAY no REASON" for those before. It is read by `bash -s` behind that part of the library, writes nothing and sends no byte.
set -u
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# try HOST PORT prints the state of one endpoint. The resolver waits 5 s for each name server that is dead before it asks the
# next one, for either address family (resolv.conf(5)).
try() {
  local said status=0
  if ! timeout 25 getent ahosts "$1" >/dev/null 2>&1; then
    printf 'reach=%s %s unresolved\n' "$1" "$2"
    return
  fi
  # shellcheck disable=SC2016 # the arguments of the inner bash
  said=$(timeout 10 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1 </dev/null) || status=$?
  case $status:$said in
    0:*) printf 'reach=%s %s open\n' "$1" "$2" ;;
    124:* | *'timed out'*) printf 'reach=%s %s silent\n' "$1" "$2" ;;
    *refused*) printf 'reach=%s %s refused\n' "$1" "$2" ;;
    *) printf 'reach=%s %s unreachable\n' "$1" "$2" ;;
  esac
}

# try_ways WAY... tells of the ways up to the first that is one. apt makes no caches for that.
# shellcheck disable=SC2154 # way_kernel and way_said are the library's
try_ways() {
  local way
  local -a words
  # shellcheck disable=SC2034 # the library reads it
  way_options=(-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  for way; do
    read -r -a words <<<"$way"
    if way_fits "${words[@]}"; then
      printf 'way=%s yes %s\n' "${words[0]}" "$way_kernel"
      return
    fi
    printf 'way=%s no %s\n' "${words[0]}" "${way_said//$'\n'/ }"
  done
}

# try_all tries what the rest of the input names, all at the same time.
try_all() {
  local host rest
  local -a ways=()
  echo kgpu-reach=1
  while read -r host rest; do
    case $host-$rest in
      way-[a-z]*) ways+=("$rest") ;;
      *) try "$host" "$rest" </dev/null & ;;
    esac
  done
  try_ways "${ways[@]}" </dev/null &
  wait
  echo end=1
}

try_all; exit # on one line: bash has read no further, and what follows is not for bash
