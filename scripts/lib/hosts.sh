# shellcheck shell=bash
# Names in /etc/hosts, beside those of others. A line of kgpu's ends with a mark.

# hosts_name ADDRESS NAME has this host know ADDRESS by NAME, whatever address kgpu gave that before.
hosts_name() {
  [[ -e /etc/hosts ]] || { claim_tree /etc/hosts && : >/etc/hosts; }
  record_once api-name "$2"
  rewrite "$(readlink -f /etc/hosts)" hosts_with "$1 $2 # kgpu" "$2"
}

# hosts_forget NAME takes kgpu's line for NAME away.
hosts_forget() {
  [[ ! -e /etc/hosts ]] || rewrite "$(readlink -f /etc/hosts)" hosts_without "$1"
}

# hosts_with LINE NAME prints standard input with LINE for NAME. It comes first: the last line may have no end.
hosts_with() {
  printf '%s\n' "$1"
  hosts_without "$2"
}

hosts_without() {
  sed "/^[^ ]\+ ${1//./\\.} # kgpu\$/d"
}
