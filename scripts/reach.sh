# shellcheck shell=bash
# Tells which endpoints this host reaches: after the script, its input has a line "HOST PORT" for each. It prints
# reach=HOST PORT STATE lines between kgpu-reach=1 and end=1, where STATE is open, refused (the machine answers, nothing
# listens), silent (no answer in time), unresolved or unreachable. It is read by `bash -s`, writes nothing and sends no byte.
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

# try_all tries what the rest of the input names, all at the same time.
try_all() {
  local host port
  echo kgpu-reach=1
  while read -r host port; do
    try "$host" "$port" </dev/null &
  done
  wait
  echo end=1
}

try_all; exit # on one line: bash has read no further, and what follows is not for bash
