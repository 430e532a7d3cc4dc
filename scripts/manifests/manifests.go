// Package manifests embeds the Kubernetes objects that kgpu applies. They are complete and can be applied by hand;
// the planner sets the pod range and the image registry in them.
package manifests

import _ "embed"

// Flannel is flannel 0.28.9 with the vxlan backend.
//
//go:embed flannel.yaml
var Flannel []byte

// Weave is Weave Net 2.9.0 (the maintained fork).
//
//go:embed weave.yaml
var Weave []byte

// DevicePlugin is NVIDIA's device plugin 0.20.0 with the RuntimeClass nvidia.
//
//go:embed device-plugin.yaml
var DevicePlugin []byte

// MPS is a patch of the device plugin's DaemonSet with NVIDIA's Multi-Process Service.
//
//go:embed mps.yaml
var MPS []byte

// Notebook is Jupyter with one card, on a port of every node.
//
//go:embed notebook.yaml
var Notebook []byte

// NotebookIdle is what the notebook has besides where it stops by itself when nobody uses it: objects, and a patch of its Deployment.
//
//go:embed notebook-idle.yaml
var NotebookIdle []byte

// Dashboard is Headlamp 0.45.0, a web UI for the cluster that nothing leads to from outside.
//
//go:embed dashboard.yaml
var Dashboard []byte

// AuditPolicy says what the API server of a cluster writes into its audit log. It is a file on the control plane, no object.
//
//go:embed audit-policy.yaml
var AuditPolicy []byte
