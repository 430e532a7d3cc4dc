#!/bin/bash
# settle-cuda-root.sh ROOT : makes an extracted Debian tree a container's root with a shell.
set -euo pipefail
root=$1
rm -rf "$root"/usr/share/{doc,man,locale,info,lintian,bash-completion,bug,menu,perl5} "$root"/usr/lib/x86_64-linux-gnu/gconv \
	"$root"/var/lib/{apt,dpkg} "$root"/var/cache/* "$root"/var/log/* "${root:?}"/dev/*
for dir in bin sbin lib lib64; do
	[ -e "$root/$dir" ] || ln -s "usr/$dir" "$root/$dir"
done
mkdir -p "$root"/{dev,proc,sys,run,tmp,root}
chmod 1777 "$root/tmp"
echo 'root:x:0:0:root:/root:/bin/bash' > "$root/etc/passwd"
echo 'root:x:0:' > "$root/etc/group"
