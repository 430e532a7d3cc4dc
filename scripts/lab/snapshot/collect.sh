# Runs as root inside a host and prints what the host is, one fact a line: kind, key, value, separated by tabs.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C SYSTEMD_COLORS=0

# Packages, with their holds, and those that came for others only.
dpkg-query -W -f='package\t${Package}:${Architecture}\t${Version} ${db:Status-Status} ${db:Status-Want}\n'
apt-mark showauto | sed 's/.*/package-auto\t&\t/'

# Units: what is enabled, and what is active or failed. Inactive units come and go with systemd's memory. A timer is running
# while what it starts is at work, and waits before and after that. What is mounted the kernel tells: systemd looks at no more
# than five changes of it in a second, and at the rest a second late. sshd answers before the host has come up whole.
timeout 60 systemctl is-system-running --wait > /dev/null || true # degraded, which the units tell
systemctl list-unit-files --plain --no-legend --no-pager | awk '{ print "unit-file\t" $1 "\t" $2 }'
systemctl list-units --plain --no-legend --no-pager --full |
  awk '$1 ~ /\.mount$/ && $4 == "mounted" { next } $1 ~ /\.timer$/ && $4 == "running" { $4 = "waiting" } { print "unit\t" $1 "\t" $2 " " $3 " " $4 }'

# A new link's own IPv6 address has no route until the kernel has asked for a second or two whether another has it.
for _ in {1..30}; do
	[ -n "$(ip -6 addr show tentative)" ] || break
	sleep 0.1
done

# Links without the number of their peer, addresses, routes and rules. Each comes in one answer of the kernel: a pod's link
# that is listed may be gone before it can be asked for by name.
ip -o link show | awk '{
	mtu = state = address = ""
	for (i = 3; i < NF; i++) {
		if ($i == "mtu") mtu = $(i + 1)
		if ($i == "state") state = tolower($(i + 1))
		if ($i ~ /^link\//) address = $(i + 1)
	}
	sub(/(@.*)?:$/, "", $2)
	print "link\t" $2 "\t" address " mtu " mtu " " state
}'
ip -o addr show | awk '{ print "address\t" $2 " " $4 "\t" $3 }'
for family in -4 -6; do
	ip "$family" route show table all | sed -E 's/ expires [0-9]+sec//; s/^/route\t/; s/ *$/\t/'
	ip "$family" rule show | sed -E "s/^/rule\t$family /; s/ *\$/\t/"
done

# Firewall rules without their counters. Each tool shows only its own. A built-in chain that accepts is as good as none.
for save in iptables-save ip6tables-save iptables-legacy-save ip6tables-legacy-save; do
	[ -n "$(command -v "$save")" ] || continue
	"$save" | awk -v s="$save" '
		/^\*/ { table = substr($0, 2) }
		/^:[A-Z]+ ACCEPT/ { next }
		/^[:-]/ { sub(/ \[[0-9]+:[0-9]+\]$/, ""); print s "\t" table " " $0 "\t" }'
done

# An interface's settings are those of "default" when it comes: only the host's own are worth a line each.
sysctl -a 2> /dev/null | awk '!/^net\.ipv[46]\.(conf|neigh)\./ || /^net\.ipv[46]\.(conf|neigh)\.(all|default|lo|eth[0-9]+)\./' |
	sed -E 's/\t/ /g; s/^([^ ]+) = ?/sysctl\t\1\t/'

awk -F: -v OFS=: '{ name = $1; $1 = ""; print "user\t" name "\t" substr($0, 2) }' /etc/passwd
awk -F: -v OFS=: '{ name = $1; $1 = ""; print "group\t" name "\t" substr($0, 2) }' /etc/group

# Modules to load at boot, and swap: what is on and what will be.
for list in /etc/modules /etc/modules-load.d/*.conf; do
	[ -e "$list" ] || continue
	sed -nE "/^[[:space:]]*([#;]|\$)/!s|^|module\t$list |p" "$list" | sed 's/$/\t/'
done
awk 'NR > 1 { print "swap\t" $1 "\ton" }' /proc/swaps
awk '$1 !~ /^#/ && $3 == "swap" { print "swap\t" $1 "\tin fstab" }' /etc/fstab

# Control groups of containers and pods. Those of units are above.
find /sys/fs/cgroup -ignore_readdir_race -type d \( -name 'kubepods*' -o -name 'kubelet*' -o -name 'cri-containerd*' -o -name 'docker-*' -o -path '*/docker/*' -o -name k8s.io \) \
	! -name '*.service' -printf 'cgroup\t%P\t\n' -prune
