# shellcheck shell=bash
# Tells which endpoints this host reaches, which versions of Kubernetes its repository has, and how apt can install a driver. After
# the script, its input has a line "HOST PORT [SCHEME]" for each endpoint, with the scheme of what apt fetches there (or
# "awaited": an API server that may just start anew, and gets half a minute for it), "kubernetes
# MINOR URL FINGERPRINT[,FINGERPRINT...] KEYURL..." for the repository, "containerd URL FINGERPRINT[,FINGERPRINT...] KEYURL SUITE
# COMPONENT" for Docker's, "apt SETTING" for what apt is to be set to for both, and "way WAY LIBRARY META PACKAGE..." for each way to
# the driver (lib/driver-ways.sh), best first. It prints reach=HOST PORT STATE lines between kgpu-reach=1 and end=1, where STATE is as
# endpoint_state says (lib/endpoints.sh), or proxy-STATE of the proxy that apt would take and that is not open; a line "offers=MINOR
# yes VERSION...", newest first, or "offers=MINOR no REASON"; a line "containerd=VERSION" of the containerd.io there, or
# "containerd=VERSION REASON" why there is none, with the distribution's own containerd ("-" where its lists do not tell); and a line
# "way=WAY yes KERNEL" for the first way that is one, "way=WAY no REASON" for those before. It is read by `bash -s` behind those parts
# of the library. It changes nothing: what apt fetches for it lies in a folder that goes again.
set -u

# Steps are units of systemd: apt has the proxy of its environment there, not that of a login.
unset http_proxy https_proxy no_proxy
while IFS='=' read -r name value; do
  case $name in http_proxy | https_proxy | no_proxy) export "$name=$value" ;; esac
done < <(timeout 5 systemctl show-environment 2>/dev/null)

# try HOST PORT [SCHEME|awaited] prints the state of one endpoint.
try() {
  local state proxy='' name tries
  local -A port=([http]=80 [https]=443 [socks5h]=1080)
  if [[ ${3-} == http* ]]; then proxy=$(apt_proxy "$3://$1:$2/"); fi
  if [[ $proxy =~ ^([^:]+)://([^/@]*@)?(\[[^]/]+\]|[^]/:[]+)(:([0-9]+))?(/.*)?$ ]]; then
    name=${BASH_REMATCH[3]#[}
    state=$(endpoint_state "${name%]}" "${BASH_REMATCH[5]:-${port[${BASH_REMATCH[1]}]-80}}" 10)
    [[ $state == open ]] || state=proxy-$state
  else
    state=$(endpoint_state "$1" "$2" 10)
    for ((tries = 0; tries < 15; tries++)); do
      [[ $state == refused && ${3-} == awaited ]] || break
      sleep 2
      state=$(endpoint_state "$1" "$2" 10)
    done
  fi
  printf 'reach=%s %s %s\n' "$1" "$2" "$state"
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
    if [[ ${words[0]} == headers ]] && ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then continue; fi # nobody knows yet
    if way_fits "${words[@]}"; then
      printf 'way=%s yes %s\n' "${words[0]}" "$way_kernel"
      return
    fi
    printf 'way=%s no %s\n' "${words[0]}" "${way_said//$'\n'/ }"
  done
}

# try_kubernetes MINOR URL FINGERPRINTS KEYURL... tells of the patches of a minor of which its repository has kubelet, kubeadm and
# kubectl: by an index that is signed with one of the keys. It wants a shell of its own.
try_kubernetes() {
  local minor=$1 url=$2 allowed=$3 key said='' offered='' why='it has none'
  shift 3
  apt_apart || return
  for key; do
    if said=$(offers_fetch "$url" "$allowed" "$key" / 2>&1); then
      offered=$(offers_whole "$minor" | sort -rV | paste -sd' ')
      [[ -z $offered ]] || break
    else
      why='apt does not answer'
    fi
  done
  if [[ -n $offered ]]; then
    printf 'offers=%s yes %s\n' "$minor" "$offered"
  else
    said=$(sed -n 's/^[EW]: //p' <<<"$said" | head -n 1)
    printf 'offers=%s no %s\n' "$minor" "${said:-$why}"
  fi
}

# try_containerd URL FINGERPRINTS KEYURL SUITE... tells of the containerd that the host would get. It wants a shell of its own.
try_containerd() {
  local said version
  apt_apart || return
  if said=$(offers_fetch "$1" "$2" "$3" "${*:4}" 2>&1); then said=; fi
  version=$(candidate containerd.io -c "$folder/apt.conf")
  if [[ -n $version ]]; then
    printf 'containerd=%s\n' "$version"
  else
    version=$(candidate containerd -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    said=$(sed -n 's/^[EW]: //p' <<<"$said" | head -n 1)
    printf 'containerd=%s %s\n' "${version:--}" "${said:-it has none}"
  fi
}

# candidate PACKAGE OPTION... prints the version of a package that apt would install.
candidate() {
  timeout 60 apt-cache "${@:2}" policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([^(].*\)$/\1/p'
}

# apt_apart gives apt a folder of its own, for its lists and its keyring, and has it run nothing of what the host has it run after an
# update. apt_settings are lines of its configuration.
apt_apart() {
  folder=$(mktemp -d) || return
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/lists/partial"
  chmod 755 "$folder"
  if [[ $EUID == 0 ]]; then chown _apt "$folder/lists/partial" 2>/dev/null; fi # as whom apt fetches then
  cat >"$folder/apt.conf" <<EOF
Dir::State::Lists "$folder/lists";
Dir::Cache "$folder/cache";
Dir::Etc::SourceList "$folder/sources.list";
Dir::Etc::SourceParts "-";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "10";
Acquire::https::Timeout "10";
EOF
  printf '%s\n' "${apt_settings[@]}" >>"$folder/apt.conf"
}

# offers_fetch URL FINGERPRINTS KEYURL SUITE reads the repository's lists.
offers_fetch() {
  local keyring=$folder/key.gpg
  timeout 30 /usr/lib/apt/apt-helper -c "$folder/apt.conf" download-file "$3" "$folder/key" || return
  if grep -aq '^-----BEGIN PGP' "$folder/key"; then keyring=$folder/key.asc; fi # apt tells them apart by their names
  cat "$folder/key" >"$keyring"
  rm -f "$folder/key"
  printf 'deb [signed-by=%s,%s] %s/ %s\n' "$keyring" "$2" "$1" "$4" >"$folder/sources.list"
  timeout 60 apt-get -c "$folder/apt.conf" -q update
}

# offers_whole MINOR prints the patches of which all three packages are there.
offers_whole() {
  apt-cache -c "$folder/apt.conf" madison kubelet kubeadm kubectl 2>/dev/null | awk -F ' *[|] *' -v minor="$1." '
    { sub(/^ +/, ""); sub(/-.*/, "", $2) }
    $2 ~ /^[0-9]+[.][0-9]+[.][0-9]+$/ && index($2, minor) == 1 && !seen[$1, $2]++ && ++parts[$2] == 3 { print $2 }'
}

# try_all tries what the rest of the input names, all at the same time.
try_all() {
  local host rest
  local -a ways=() kubernetes=() containerd=() apt_settings=() words
  echo kgpu-reach=1
  while read -r host rest; do
    case $host-$rest in
      apt-*' '*) apt_settings+=("$rest") ;;
      kubernetes-*' '*) read -r -a kubernetes <<<"$rest" ;;
      containerd-*' '*) read -r -a containerd <<<"$rest" ;;
      way-[a-z]*) ways+=("$rest") ;;
      *) read -r -a words <<<"$rest" && try "$host" "${words[@]}" </dev/null & ;;
    esac
  done
  try_ways "${ways[@]}" </dev/null &
  { # one apt after the other
    if [[ ${#kubernetes[@]} -gt 0 ]]; then (try_kubernetes "${kubernetes[@]}"); fi
    if [[ ${#containerd[@]} -gt 0 ]]; then (try_containerd "${containerd[@]}"); fi
  } </dev/null &
  wait
  echo end=1
}

try_all; exit # on one line: bash has read no further, and what follows is not for bash
