#!/bin/sh
# A stand-in of the kgpu lab: it compiles nothing.
echo 'nvcc: a stand-in of the kgpu lab'
echo 'Cuda compilation tools, release @VERSION@'
[ "$1" = --version ] || exit 1
