#!/usr/bin/env bash
# proof.sh KUBECONFIG [WORKER1 WORKER2]: show that a cluster works. Pods on two workers talk through a Service, and logs,
# exec, cp, attach and port-forward reach them. Leaves nothing behind in the cluster.
set -euo pipefail

export KUBECONFIG=$1
one=${2:-w1} two=${3:-w2}
kubectl=${KUBECTL:-kubectl}
namespace=kgpu-proof
scratch=$(mktemp -d)
forward=

finish() {
	[ -z "$forward" ] || kill "$forward" 2>/dev/null || true
	"$kubectl" delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null 2>&1 || true
	rm -rf "$scratch"
}
trap finish EXIT

k() { timeout 60 "$kubectl" -n "$namespace" "$@"; }
say() { printf '  %s\n' "$*"; }
fail() {
	echo "proof: $*" >&2
	k get pods -o wide >&2 || true
	k get events --sort-by=.lastTimestamp 2>/dev/null | tail -15 >&2 || true
	exit 1
}
expect() { # WHAT PATTERN TEXT
	grep -q -- "$2" <<<"$3" || fail "$1: expected '$2' in: $3"
	say "$1: works"
}

"$kubectl" delete namespace "$namespace" --ignore-not-found --timeout=120s >/dev/null
"$kubectl" create namespace "$namespace" >/dev/null
k apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: $one
  terminationGracePeriodSeconds: 1
  containers:
    - {name: web, image: "registry.k8s.io/lab/netbox:1", args: [serve, ":8080"], stdin: true}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  nodeName: $two
  terminationGracePeriodSeconds: 1
  containers:
    - {name: client, image: "docker.io/library/busybox:1.37", command: [netbox, sleep]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
YAML
timeout 150 "$kubectl" -n "$namespace" wait --for=condition=Ready pod/web pod/client --timeout=140s >/dev/null || fail 'the pods are not ready'
say "pods run on $one and $two"

# A new Service reaches the nodes' rules a moment after its pods are ready.
for _ in $(seq 30); do
	! answer=$(k exec client -- netbox get http://web.kgpu-proof.svc.cluster.local/ 2>&1) || break
	sleep 0.5
done
expect "a pod on $two reaches a pod on $one through DNS and a Service" host=web "$answer"
expect logs hit "$(k logs web)"
expect exec "client" "$(k exec client -- hostname)"
printf 'carried there and back\n' >"$scratch/there"
k cp "$scratch/there" client:/tmp/file >/dev/null || fail 'cp to the pod'
k cp client:/tmp/file "$scratch/back" >/dev/null || fail 'cp from the pod'
cmp -s "$scratch/there" "$scratch/back" || fail 'cp brought back something else'
say 'cp: works'

# What a background job writes to is there before somebody looks for it.
touch "$scratch/attached" "$scratch/forward"
timeout 15 "$kubectl" -n "$namespace" attach web </dev/null >"$scratch/attached" 2>&1 &
attached=$!
for _ in $(seq 50); do
	k exec client -- netbox get http://web/ >/dev/null || fail 'no answer while attached'
	! grep -q hit "$scratch/attached" || break
	sleep 0.2
done
kill "$attached" 2>/dev/null || true
expect attach hit "$(cat "$scratch/attached")"

timeout 60 "$kubectl" -n "$namespace" port-forward --address 127.0.0.1 pod/web :8080 >"$scratch/forward" 2>&1 &
forward=$!
for _ in $(seq 100); do
	port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$scratch/forward")
	[ -z "$port" ] || break
	sleep 0.1
done
[ -n "$port" ] || fail "port-forward: $(cat "$scratch/forward")"
expect port-forward host=web "$(curl -fsS --max-time 10 "http://127.0.0.1:$port/")"
