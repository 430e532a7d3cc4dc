#!/usr/bin/env bash
# Restarts the kubelet, which looks for cards once, when it starts: the driver has come since.
# shellcheck source=/dev/null
. "$KGPU_STEP/../../lib.sh"

# Without one of these the kubelet offers no card. Source: pkg/kubelet/gpu/nvidia/nvidia_gpu_manager.go of Kubernetes 1.6.
for device in /dev/nvidiactl /dev/nvidia-uvm; do
  [[ -e $device ]] || fail GPU_DRIVER_MISSING "the driver has made no $device"
done
unit_restart kubelet.service
