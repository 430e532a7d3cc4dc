package doctor

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/inventory"
)

// undefended lists the protections that the API server lacks and that a new cluster would have.
func undefended(s *examinee) []string {
	c := s.f.ControlPlane
	if c == nil {
		return nil
	}
	version, err := catalog.ParseVersion(c.Version)
	if minor, ok := catalog.Kubernetes(version.Minor); err != nil || !ok || !minor.Secured() {
		return nil
	}
	var out []string
	lacks := func(lacks bool, what string) {
		if lacks {
			out = append(out, what)
		}
	}
	want, has := s.inv.Security, c.Defences
	lacks(want.PodSecurity != inventory.PodsPrivileged && has.Admission == "",
		"no --admission-control-config-file: namespaces without a label for Pod Security take pods that rule their node")
	lacks(want.AuditLog && has.AuditLog == "", "no --audit-log-path: nothing says afterwards who did what")
	lacks(!slices.Contains(strings.Split(has.Plugins, ","), "DenyServiceExternalIPs"),
		"--enable-admission-plugins without DenyServiceExternalIPs: who may make Services can take traffic to any address")
	lacks(want.EncryptSecrets && has.Encryption == "", "no --encryption-provider-config: Secrets are in etcd as they are")
	return out
}
