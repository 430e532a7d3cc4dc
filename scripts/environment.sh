#!/usr/bin/env bash
# The environment of what kgpu runs on hosts, with which every script begins: programs speak English, where glibc before 2.39 and
# Python follow LANGUAGE whatever LC_ALL says; and what packages bring comes before programs of the same name in /usr/local.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin
unset LANGUAGE
