# shellcheck shell=bash
# Packet filter rules of a program, taken out one by one: everybody else's rules stay as they are.

kubernetes_chains='(KUBE|CNI|FLANNEL|WEAVE|CALI)-.*|WEAVE|cali-.*'
kubernetes_rules='--comment "?(block non-local access to weave net|flanneld (forward|masq)|cali:)|-[io] (weave|cni0|flannel\.1)( |$)'
docker_chains='DOCKER(-.*)?'
docker_rules='-[io] docker0( |$)'

# rules_drop CHAINS RULES removes the chains whose whole name matches CHAINS, the jumps to them, and the rules that match
# RULES (without regard to case).
rules_drop() {
  local tool
  for tool in $(rules_tools); do
    "$tool-save" | rules_removal "$1" "$2" | "$tool-restore" --noflush -w 10 ||
      undo_left "packet filter rules: $tool-restore refused"
  done
}

# rules_tools prints the iptables variants that hold rules here. The legacy tools are only asked where the kernel has
# their tables: asking would create them.
rules_tools() {
  local tool names
  for tool in iptables ip6tables; do
    names=/proc/net/ip_tables_names
    [[ $tool == iptables ]] || names=/proc/net/ip6_tables_names
    if ! command -v "$tool-nft-save" >/dev/null; then
      command -v "$tool-save" || true
      continue
    fi
    echo "$tool-nft"
    if grep -q . "$names" 2>/dev/null && command -v "$tool-legacy-save" >/dev/null; then echo "$tool-legacy"; fi
  done | sed 's/-save$//'
}

# rules_removal CHAINS RULES turns the output of iptables-save into the input of iptables-restore --noflush that removes
# what matches: rules in other chains first, then the chains are emptied, then deleted.
rules_removal() {
  CHAINS=$1 RULES=$2 awk '
    function ours(name) { return name ~ ("^(" ENVIRON["CHAINS"] ")$") }
    BEGIN { rules = tolower(ENVIRON["RULES"]) }
    /^\*/ { table = $0; removed = emptied = deleted = "" }
    /^:/ {
      name = substr($1, 2)
      if (ours(name)) { emptied = emptied ":" name " - [0:0]\n"; deleted = deleted "-X " name "\n" }
    }
    /^-A / && !ours($2) {
      target = ""
      for (i = 3; i < NF; i++) if ($i == "-j" || $i == "-g") target = $(i + 1)
      if (ours(target) || tolower($0) ~ rules) { sub(/^-A/, "-D"); removed = removed $0 "\n" }
    }
    /^COMMIT/ && removed emptied != "" { printf "%s\n%s%s%sCOMMIT\n", table, emptied, removed, deleted }'
}

# forward_policy TOOL prints the policy of the FORWARD chain.
forward_policy() {
  "$1" -w 10 -S FORWARD | awk '$1 == "-P" { print $3 }'
}
