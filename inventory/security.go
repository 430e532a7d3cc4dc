package inventory

import (
	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// PodSecurity is a level of the Pod Security Standards: what pods may do to their node.
// Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
type PodSecurity string

// The levels.
const (
	PodsPrivileged PodSecurity = "privileged" // anything
	PodsBaseline   PodSecurity = "baseline"   // nothing by which they would rule the node
	PodsRestricted PodSecurity = "restricted" // no root either
)

// Security says how a new cluster defends itself, with Kubernetes 1.30 and newer. A control plane that runs stays as it is.
type Security struct {
	PodSecurity PodSecurity // of namespaces that say nothing else, default baseline
	AuditLog    bool        // of the API server, on the control plane's disk; default true
	// EncryptSecrets: they are encrypted in etcd, with a key that is made on the control plane and stays there.
	EncryptSecrets bool
}

func securityKeys() keys[Security] {
	return keys[Security]{
		"podSecurity":    value(func(s *Security) *PodSecurity { return &s.PodSecurity }, oneOf(PodsPrivileged, PodsBaseline, PodsRestricted)),
		"auditLog":       boolean(func(s *Security) *bool { return &s.AuditLog }),
		"encryptSecrets": boolean(func(s *Security) *bool { return &s.EncryptSecrets }),
	}
}

// security decodes the section, and remembers that somebody asks for something.
func security(d *decoder, f *file, n *yaml.Node, path string) {
	f.secured = !isNull(n)
	mapping(d, n, path, securityKeys(), &f.Security)
}

// checkSecurity refuses to be asked for what an older Kubernetes will not get.
func (f *file) checkSecurity(m catalog.Minor) findings {
	if !f.secured || m.Secured() {
		return nil
	}
	return found("security", "kgpu sets this up with Kubernetes 1.%d and newer, not with %s: leave the section out",
		catalog.SecuredSince, f.Kubernetes.Version.MinorString())
}
