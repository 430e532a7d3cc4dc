#!/bin/bash
# configure-base.sh ROOT CLIENT_KEY.pub CA.crt ARCHIVE_KEY.gpg RUNC_WRAPPER
# Turns a fresh Debian tree into what a cloud image looks like after its first boot: user, ssh, sources; and into something that
# boots in namespaces: no udev, no console, built-in kernel modules known to modprobe.
set -euo pipefail
root=$1 client_key=$2 ca=$3 archive_key=$4 runc=$5

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
put() { install -D -m "${2:-644}" /dev/stdin "$root/$1"; }

# Identity: every host gets its own.
rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/dbus/machine-id" "$root/etc/hostname"
: > "$root/etc/machine-id"
: > "$root/etc/fstab"
rm -f "$root/etc/resolv.conf"
: > "$root/etc/resolv.conf"

# The user of a cloud image.
in_root useradd --create-home --shell /bin/bash --groups sudo,adm ubuntu
put etc/sudoers.d/90-cloud-init-users 440 <<< 'ubuntu ALL=(ALL) NOPASSWD:ALL'
install -d -m 700 "$root/home/ubuntu/.ssh"
install -m 600 "$client_key" "$root/home/ubuntu/.ssh/authorized_keys"
in_root chown -R ubuntu:ubuntu /home/ubuntu/.ssh
put etc/ssh/sshd_config.d/50-cloud.conf <<'CONF'
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
CONF

# The lab's internet: its certificate authority, the key of its archive, and where packages come from.
install -D -m 644 "$ca" "$root/usr/local/share/ca-certificates/kgpu-lab.crt"
in_root update-ca-certificates > /dev/null
install -D -m 644 "$archive_key" "$root/usr/share/keyrings/lab-archive.gpg"
rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
put etc/apt/sources.list.d/debian.sources <<'SOURCES'
Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/lab-archive.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: trixie-security
Components: main
Signed-By: /usr/share/keyrings/lab-archive.gpg
SOURCES

# systemd: nothing that belongs to real hardware or to the machine underneath.
for unit in systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service \
	systemd-udev-settle.service getty@tty1.service console-getty.service systemd-networkd.service systemd-resolved.service \
	systemd-timesyncd.service systemd-modules-load.service sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount \
	sys-fs-fuse-connections.mount dev-mqueue.mount dev-hugepages.mount systemd-remount-fs.service apt-daily.timer apt-daily-upgrade.timer \
	dpkg-db-backup.timer e2scrub_all.timer systemd-random-seed.service systemd-firstboot.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
ln -sf /usr/lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
in_root systemctl enable --quiet ssh.service
put etc/systemd/journald.conf.d/lab.conf <<'CONF'
[Journal]
Storage=persistent
ForwardToConsole=no
ReadKMsg=no
SystemMaxUse=100M
CONF

# modprobe succeeds for what the running kernel has built in, and only for that.
kernel=$(uname -r)
modules=$root/lib/modules/$kernel
mkdir -p "$modules"
: > "$modules/modules.order"
: > "$modules/modules.builtin.modinfo"
config() { zcat /proc/config.gz 2> /dev/null || cat "/boot/config-$kernel" 2> /dev/null || true; }
config > "$root/boot/config-$kernel"
while read -r option module; do
	if grep -q "^CONFIG_$option=y" "$root/boot/config-$kernel" || { [ -d "/sys/module/$(basename "$module")" ]; }; then
		echo "kernel/$module.ko"
	fi
done > "$modules/modules.builtin" <<'MODULES'
OVERLAY_FS fs/overlayfs/overlay
FUSE_FS fs/fuse/fuse
BRIDGE net/bridge/bridge
BRIDGE_NETFILTER net/bridge/br_netfilter
VLAN_8021Q net/8021q/8021q
VXLAN drivers/net/vxlan/vxlan
GENEVE drivers/net/geneve
VETH drivers/net/veth
DUMMY drivers/net/dummy
TUN drivers/net/tun
IPVLAN drivers/net/ipvlan/ipvlan
MACVLAN drivers/net/macvlan
WIREGUARD drivers/net/wireguard/wireguard
NET_IPIP net/ipv4/ipip
NF_CONNTRACK net/netfilter/nf_conntrack
NF_NAT net/netfilter/nf_nat
NF_TABLES net/netfilter/nf_tables
NETFILTER_XTABLES net/netfilter/x_tables
NETFILTER_XT_MATCH_CONNTRACK net/netfilter/xt_conntrack
NETFILTER_XT_MATCH_COMMENT net/netfilter/xt_comment
NETFILTER_XT_TARGET_MASQUERADE net/netfilter/xt_MASQUERADE
NETFILTER_XT_SET net/netfilter/xt_set
IP_SET net/netfilter/ipset/ip_set
IP_VS net/netfilter/ipvs/ip_vs
IP_VS_RR net/netfilter/ipvs/ip_vs_rr
IP_VS_WRR net/netfilter/ipvs/ip_vs_wrr
IP_VS_SH net/netfilter/ipvs/ip_vs_sh
IP_NF_IPTABLES net/ipv4/netfilter/ip_tables
IP_NF_FILTER net/ipv4/netfilter/iptable_filter
IP_NF_MANGLE net/ipv4/netfilter/iptable_mangle
IP_NF_NAT net/ipv4/netfilter/iptable_nat
IP6_NF_IPTABLES net/ipv6/netfilter/ip6_tables
OPENVSWITCH net/openvswitch/openvswitch
MODULES
in_root depmod "$kernel"

# Where root lacks CAP_SYS_RESOURCE a wrapper stands in front of runc, whichever package brings it.
for path in /usr/sbin/runc /usr/bin/runc; do
	in_root dpkg-divert --quiet --local --no-rename --divert "$path.real" --add "$path"
done
install -m 755 "$runc" "$root/usr/sbin/runc"

apt_leftovers=("$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/log/*.log "$root"/var/log/apt/*)
rm -rf "${apt_leftovers[@]}"
