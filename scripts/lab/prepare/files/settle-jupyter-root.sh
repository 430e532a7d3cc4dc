#!/bin/bash
# settle-jupyter-root.sh ROOT : does for a root that settle-cuda-root.sh has settled what the maintainer scripts of Jupyter's packages
# would have done, removes what server and kernels do not need, and compiles what they load at a start.
set -euo pipefail
root=$1
packages=$root/usr/lib/python3/dist-packages
rm -rf "$root"/usr/share/{javascript,fonts,fonts-*,gdb,gcc,source-highlight,nodejs} "$root"/usr/bin/{gdb*,*perl*} \
	"$root"/usr/lib/x86_64-linux-gnu/perl* "$packages"/*-stubs
# Alternatives.
for library in blas lapack; do
	ln -sf "$library/lib$library.so.3" "$root/usr/lib/x86_64-linux-gnu/lib$library.so.3"
done
ln -sf mawk "$root/usr/bin/awk"
rm -f "$root/usr/lib/python3.13/sitecustomize.py" # a link to a file that nobody has made
chroot "$root" /sbin/ldconfig
mkdir -p "$root/etc/ssl/certs" # what an import of requests reads
find "$root/usr/share/ca-certificates" -name '*.crt' -exec cat {} + > "$root/etc/ssl/certs/ca-certificates.crt"
# The image that this stands in for has notebook's pages, which are made of JupyterLab's.
ln -sf jupyter-lab "$root/usr/bin/jupyter-notebook"
mkdir -p "$root/tf"
# All files of a layer get the same time, so the compiled files must not be checked by time. What cannot be imported fails here.
chroot "$root" python3 -B - <<'PYTHON'
import py_compile, sys

import ipykernel.kernelapp, jupyter_server.serverapp, jupyterlab.labapp, numpy
from jupyter_server.services.kernels import handlers, kernelmanager, websocket

for module in list(sys.modules.values()):
    source = getattr(module, "__file__", None) or ""
    if source.endswith(".py"):
        py_compile.compile(source, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
PYTHON
