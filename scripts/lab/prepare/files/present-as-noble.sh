#!/bin/bash
# present-as-noble.sh ROOT : makes a configured trixie base say that it is Ubuntu 24.04, with Ubuntu's sources and PATH.
# The packages stay Debian's: what is exercised is kgpu's choice of repositories and package names.
set -euo pipefail
root=$1
put() { install -D -m 644 /dev/stdin "$root/$1"; }

rm -f "$root/etc/os-release"
put usr/lib/os-release <<'RELEASE'
PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.3 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
HOME_URL="https://www.ubuntu.com/"
SUPPORT_URL="https://help.ubuntu.com/"
BUG_REPORT_URL="https://bugs.launchpad.net/ubuntu/"
UBUNTU_CODENAME=noble
LOGO=ubuntu-logo
RELEASE
ln -s ../usr/lib/os-release "$root/etc/os-release"
put etc/lsb-release <<'RELEASE'
DISTRIB_ID=Ubuntu
DISTRIB_RELEASE=24.04
DISTRIB_CODENAME=noble
DISTRIB_DESCRIPTION="Ubuntu 24.04.3 LTS"
RELEASE
rm -f "$root/etc/debian_version" "$root/etc/apt/sources.list.d/debian.sources"
put etc/environment <<< 'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games:/snap/bin"'
put etc/apt/sources.list.d/ubuntu.sources <<'SOURCES'
Types: deb
URIs: http://archive.ubuntu.com/ubuntu/
Suites: noble noble-updates noble-backports
Components: main restricted universe multiverse
Signed-By: /usr/share/keyrings/lab-archive.gpg

Types: deb
URIs: http://security.ubuntu.com/ubuntu/
Suites: noble-security
Components: main restricted universe multiverse
Signed-By: /usr/share/keyrings/lab-archive.gpg
SOURCES
