package catalog

// SecuredSince is the first minor whose new clusters get the inventory's `security` settings. By then everything that
// they need is out of beta: the kubelets' seccompDefault since 1.27, Pod Security admission since 1.25, audit.k8s.io/v1
// since 1.12; the admission plugin DenyServiceExternalIPs came with 1.21.
// Sources: kubernetes.io/docs/tutorials/security/seccomp, kubernetes.io/docs/concepts/security/pod-security-admission,
// kubernetes.io/docs/reference/access-authn-authz/admission-controllers.
const SecuredSince = 30

// Secured reports whether the minor is SecuredSince or newer.
func (m Minor) Secured() bool { return m.Number >= SecuredSince }
