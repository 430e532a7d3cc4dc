package plan

import (
	"maps"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// How the API server of a new control plane defends the cluster: flags, files that they name, and where it writes. All of it is in
// the files that kubeadm init reads or finds, so that a cluster that runs stays as it is.
const (
	securityDir   = "/etc/kubernetes/kgpu"
	admissionFile = securityDir + "/admission.yaml"
	auditPolicy   = securityDir + "/audit-policy.yaml"
	encryption    = securityDir + "/encryption.yaml" // made on the host
	auditDir      = "/var/log/kubernetes/audit"
	auditLog      = auditDir + "/audit.log"
)

// Bounds of the audit log: days, former files, and MiB of each. Source: items 1.2.16 to 1.2.19 of the CIS Kubernetes Benchmark 1.12.
const (
	auditDays  = 30
	auditFiles = 10
	auditMiB   = 100
)

// componentFlags are the flags of the control plane's programs, by the names that kubeadm has for these.
func (b *builder) componentFlags() map[string]map[string]string {
	api, manager, scheduler := map[string]string{}, map[string]string{}, map[string]string{}
	if gates := formatGates(b.Inventory.Kubernetes.FeatureGates); gates != "" {
		api["feature-gates"], manager["feature-gates"], scheduler["feature-gates"] = gates, gates, gates
	}
	if b.Minor.Secured() {
		// NodeRestriction is kubeadm's own, which the flag replaces. The scheduler's flag for profiling is about to go.
		api["enable-admission-plugins"] = "NodeRestriction,DenyServiceExternalIPs"
		api["profiling"], manager["profiling"] = "false", "false"
	}
	if b.limitsPods() {
		api["admission-control-config-file"] = admissionFile
	}
	if b.audits() {
		api["audit-policy-file"], api["audit-log-path"] = auditPolicy, auditLog
		api["audit-log-maxage"], api["audit-log-maxbackup"], api["audit-log-maxsize"] = strconv.Itoa(auditDays), strconv.Itoa(auditFiles), strconv.Itoa(auditMiB)
	}
	if b.encrypts() {
		api["encryption-provider-config"] = encryption
	}
	return map[string]map[string]string{"apiServer": api, "controllerManager": manager, "scheduler": scheduler}
}

// limitsPods: the cluster has a level of its own for namespaces that name none.
func (b *builder) limitsPods() bool {
	return b.Minor.Secured() && b.Inventory.Security.PodSecurity != inventory.PodsPrivileged
}

func (b *builder) audits() bool { return b.Minor.Secured() && b.Inventory.Security.AuditLog }

func (b *builder) encrypts() bool { return b.Minor.Secured() && b.Inventory.Security.EncryptSecrets }

// components adds to kubeadm's settings of the cluster what its programs are started with.
func (b *builder) components(cluster object) {
	for name, flags := range b.componentFlags() {
		if len(flags) > 0 {
			part, _ := cluster[name].(object)
			cluster[name] = merge(part, object{"extraArgs": b.extraArgs(flags)})
		}
	}
	if volumes := b.securityVolumes(); len(volumes) > 0 {
		cluster["apiServer"] = merge(cluster["apiServer"].(object), object{"extraVolumes": volumes})
	}
}

// securityVolumes are the directories that the API server's container sees.
func (b *builder) securityVolumes() (volumes []any) {
	if len(b.securityFiles()) > 0 || b.encrypts() {
		volumes = append(volumes, object{"name": "kgpu-security", "hostPath": securityDir, "mountPath": securityDir, "readOnly": true, "pathType": "Directory"})
	}
	if b.audits() {
		volumes = append(volumes, object{"name": "kgpu-audit", "hostPath": auditDir, "mountPath": auditDir, "pathType": "Directory"})
	}
	return volumes
}

// planeInput is what kubeadm needs on a host that it makes a control plane: each has the same settings.
func (b *builder) planeInput(config string) graph.Input {
	values := map[string]string{"kubeadm": config, "criSocket": b.criSocket()}
	if b.audits() {
		values["auditLog"] = auditDir
	}
	if b.encrypts() {
		values["encryption"] = encryption
	}
	files := b.madeWith()
	maps.Copy(files, b.securityFiles())
	return graph.Input{Values: b.withFlags(values), Files: files}
}

func (b *builder) securityFiles() map[string]graph.File {
	files := map[string]graph.File{}
	if b.limitsPods() {
		files[admissionFile] = graph.File{Mode: 0o600, Content: []byte(podSecurity(b.Inventory.Security.PodSecurity))}
	}
	if b.audits() {
		files[auditPolicy] = graph.File{Mode: 0o600, Content: manifests.AuditPolicy}
	}
	return files
}

// podSecurity has namespaces that name no level refuse pods beyond this one; who makes a Deployment of such pods is warned at once.
// Only kube-system is exempt, as it cannot be labelled before its first pods are there: kgpu's other namespaces have labels.
// Source: https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-admission-controller/
func podSecurity(level inventory.PodSecurity) string {
	defaults := object{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		defaults[mode], defaults[mode+"-version"] = string(level), "latest"
	}
	text, err := manifests.Encode(object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
		"plugins": []any{object{"name": "PodSecurity", "configuration": object{
			"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
			"defaults":   defaults,
			"exemptions": object{"namespaces": []any{"kube-system"}},
		}}},
	})
	if err != nil {
		panic(err) // strings alone can be encoded
	}
	return text
}
