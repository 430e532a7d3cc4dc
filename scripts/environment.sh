#!/usr/bin/env bash
# The environment of what kgpu runs on hosts, with which every script begins: programs speak English, where glibc before 2.39 and
# Python follow LANGUAGE whatever LC_ALL says; and what packages bring comes before programs of the same name in /usr/local.
# kubectl and kubeadm live for moments: with a server's habits of collecting garbage, they take half as much again of the processor.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin GOGC=400
unset LANGUAGE
