#!/usr/bin/env bash
# demo.sh: three hosts, one cluster, and the proof that it works. `make demo` calls it.
set -euo pipefail
cd "$(dirname "$0")/../.."

lab=scripts/lab/lab
kgpu=bin/kgpu

echo "==> preparing the lab (cached after the first time)"
"$lab" prepare gpu
echo "==> booting 1 control plane and 2 workers with 2 and 1 cards (stand-ins: scripts/lab/REAL.md)"
"$lab" up --workers 2 --gpus w1=2xA100 --gpus w2=1xT4
environment=$("$lab" env)
eval "$environment"
echo "==> kgpu up examples/lab.yaml"
"$kgpu" up examples/lab.yaml
echo "==> the cluster"
"$KUBECTL" --kubeconfig examples/lab.kubeconfig get nodes -o wide
"$KUBECTL" --kubeconfig examples/lab.kubeconfig -n kube-system rollout status deployment/coredns --timeout=60s
scripts/lab/proof.sh examples/lab.kubeconfig w1 w2
echo "==> kgpu smoke examples/lab.yaml"
"$kgpu" smoke examples/lab.yaml
cat <<'NEXT'

Three Ready nodes, three cards that work, and a notebook that computes on one: its address is above.
What to try next:

  eval "$(scripts/lab/lab env)"                                # what examples/lab.yaml asks for
  bin/kgpu plan examples/lab.yaml                              # nothing is to do
  "$KUBECTL" --kubeconfig examples/lab.kubeconfig get pods -A
  scripts/lab/lab ssh w1                                       # look around on a worker
  scripts/lab/lab up --workers 3 && bin/kgpu add-worker -i examples/lab.yaml 10.199.0.13
  bin/kgpu reset -i examples/lab.yaml                          # undo everything
  make demo-down                                               # remove the hosts
NEXT
