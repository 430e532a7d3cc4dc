#!/bin/bash
# shrink-tools.sh ROOT : leaves of an extracted Debian tree what a container with iptables and a shell runs.
set -euo pipefail
root=$1
rm -rf "$root"/usr/share/{doc,man,locale,info,perl,lintian,bash-completion,bug,menu} "$root"/usr/lib/x86_64-linux-gnu/gconv \
	"$root"/usr/lib/x86_64-linux-gnu/perl* "$root"/usr/bin/perl* "$root"/var/lib/{apt,dpkg} "$root"/var/cache/* "$root"/var/log/* "${root:?}"/dev/*
[ -e "$root/bin" ] || for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
mkdir -p "$root"/{proc,sys,run,tmp,etc/ssl/certs} "$root/usr/local/bin"
chmod 1777 "$root/tmp"
cat > "$root/usr/sbin/xtables-choice" <<'END'
#!/bin/sh
# Takes legacy or nft, once, as the images of kube-proxy and flannel do that their makers publish: where the kubelet has its chains.
mode=nft
if ! xtables-nft-multi iptables-save -t mangle 2>/dev/null | grep -q '^:KUBE-' && xtables-legacy-multi iptables-save 2>/dev/null | grep -q '^:KUBE-'; then
	mode=legacy
fi
for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
	ln -sf "xtables-$mode-multi" "/usr/sbin/$name"
done
exec "/usr/sbin/xtables-$mode-multi" "${0##*/}" "$@"
END
chmod 755 "$root/usr/sbin/xtables-choice"
for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
	ln -sf xtables-choice "$root/usr/sbin/$name"
done
find "$root/usr/share/ca-certificates" -name '*.crt' -exec cat {} + > "$root/etc/ssl/certs/ca-certificates.crt"
chroot "$root" /usr/bin/busybox --list | while read -r applet; do
	[ -e "$root/usr/sbin/$applet" ] || [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
done
echo 'root:x:0:0:root:/root:/bin/sh' > "$root/etc/passwd"
echo 'root:x:0:' > "$root/etc/group"
