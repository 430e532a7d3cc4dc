#!/bin/bash
# uname of a lab's host with an older kernel. uname(2) tells the machine's kernel, and no namespace has another: so this says instead
# what the host has booted, which the lab puts into /proc.
set -u
said=$(/usr/bin/uname "$@") || exit
printf '%s\n' "${said//"$(/usr/bin/uname -r)"/$(</proc/sys/kernel/osrelease)}"
