package catalog

// SecuredSince is the oldest minor whose new clusters get what the inventory's section `security` is about. Everything that it
// takes is out of beta by then: the kubelets' seccompDefault since 1.27, Pod Security admission since 1.25, audit.k8s.io/v1
// since 1.12; the admission plugin DenyServiceExternalIPs came with 1.21.
// Sources: kubernetes.io/docs/tutorials/security/seccomp, kubernetes.io/docs/concepts/security/pod-security-admission,
// kubernetes.io/docs/reference/access-authn-authz/admission-controllers.
const SecuredSince = 30

// Secured reports whether the minor is one of those.
func (m Minor) Secured() bool { return m.Number >= SecuredSince }
