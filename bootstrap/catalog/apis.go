package catalog

// What the API of a minor calls the kinds that kgpu makes, and which fields it does not know yet: kubectl and the API server
// refuse objects with others. Sources: staging/src/k8s.io/api of k8s.io/kubernetes at each minor's last patch (1.6 and 1.7:
// staging/src/k8s.io/client-go/pkg/apis), and kubernetes.io/docs/reference/using-api/deprecation-guide.

// WorkloadsAPI is the API version of DaemonSets and Deployments.
func (m Minor) WorkloadsAPI() string {
	if m.Number < 9 {
		return "extensions/v1beta1"
	}
	return "apps/v1"
}

// RBACAPI is the API version of roles and their bindings.
func (m Minor) RBACAPI() string {
	if m.Number < 8 {
		return "rbac.authorization.k8s.io/v1beta1"
	}
	return "rbac.authorization.k8s.io/v1"
}

// RuntimeClassAPI is the API version of RuntimeClasses; empty if the minor has none, so that all pods get the default
// runtime.
func (m Minor) RuntimeClassAPI() string {
	switch {
	case m.Number < 14:
		return ""
	case m.Number < 20:
		return "node.k8s.io/v1beta1"
	}
	return "node.k8s.io/v1"
}

// Feature is something of Kubernetes that kgpu uses and that older minors lack. Its value is the first minor that has it.
type Feature int

// These are the features, with their places in k8s.io/kubernetes.
const (
	OSLabel               Feature = 14 // nodes have the label kubernetes.io/os: pkg/kubelet
	PriorityClasses       Feature = 11 // PodPriority is on, and the class system-node-critical exists
	PriorityAnywhere      Feature = 17 // pods outside of kube-system may be system-node-critical: plugin/pkg/admission/priority
	HostPathType          Feature = 8  // HostPathVolumeSource.Type
	BackoffLimit          Feature = 8  // JobSpec.BackoffLimit
	ServiceLinks          Feature = 13 // PodSpec.EnableServiceLinks
	KubeletConfig         Feature = 11 // kubeadm writes a KubeletConfiguration; before, flags in a drop-in of the unit
	DiscoveryHash         Feature = 8  // kubeadm join verifies the API server: NodeConfiguration.DiscoveryTokenCACertHashes
	KubeadmNodeName       Feature = 7  // MasterConfiguration.NodeName; before, a node has its host's name
	ControlPlaneEndpoint  Feature = 11 // API.ControlPlaneEndpoint with a port
	ImageRepositoryKey    Feature = 8  // MasterConfiguration.ImageRepository; before, the environment of kubeadm
	IgnorePreflightErrors Feature = 9  // kubeadm --ignore-preflight-errors; before, only all checks can be skipped
	IgnoreInFile          Feature = 15 // NodeRegistrationOptions.IgnorePreflightErrors, v1beta2; before, a flag
	CNILists              Feature = 7  // *.conflist: pkg/kubelet/network/cni
	CoreDNS               Feature = 11 // before, kube-dns: cmd/kubeadm/app/features
	DNSFolder             Feature = 21 // the image is coredns/coredns: cmd/kubeadm/app/images
	CgroupV2              Feature = 19 // pkg/kubelet/cm: IsCgroup2UnifiedMode
	CDIDevices            Feature = 29 // the kubelet passes on the CDI devices of device plugins: DevicePluginCDIDevices is on
	DockerSplit           Feature = 14 // docker 18.09 is tested, the first with docker-ce-cli and containerd.io

	// APIName is kgpu's own: new clusters get a name for their API server. kubeadm supports names since ControlPlaneEndpoint,
	// but kgpu's new features are for supported minors only.
	APIName Feature = 30
)

// Has reports whether the minor has a feature.
func (m Minor) Has(f Feature) bool { return m.Number >= int(f) }

// ContainerdTwoSince is the first minor whose kubelet refuses a containerd before 2: it asks the runtime for its cgroup
// driver and ignores its own setting. Source: kubernetes/kubernetes pull request 136731, kubernetes/website 55954.
const ContainerdTwoSince = 38

// DNS is the name of the cluster DNS's Deployment in kube-system.
func (m Minor) DNS() string {
	if !m.Has(CoreDNS) {
		return "kube-dns"
	}
	return "coredns"
}

// ImageRepository is the registry of the control plane's images.
// Source: DefaultImageRepository in cmd/kubeadm/app/apis/kubeadm/*/defaults.go of each minor's last patch.
func (m Minor) ImageRepository() string {
	switch {
	case m.Number < 10:
		return "gcr.io/google_containers"
	case m.Number < 22:
		return "k8s.gcr.io"
	}
	return "registry.k8s.io"
}

// PauseImage is the minor's pause image in a registry.
func (m Minor) PauseImage(registry string) string {
	name := "pause"
	if m.Number < 11 {
		name = "pause-amd64" // pkg/kubelet/dockershim/docker_sandbox.go
	}
	return registry + "/" + name + ":" + m.Pause()
}

// NewestDocker is the newest docker that the minor's own checks know; empty if any of Docker's repository will do.
// Source: Version and latestValidatedDockerVersion in test/e2e_node/system (from 1.12 cmd/kubeadm/app/util/system).
func (m Minor) NewestDocker() string {
	switch {
	case m.Number < 8:
		return "1.12"
	case m.Number < 12:
		return "17.03"
	case !m.Has(DockerSplit):
		return "18.06"
	}
	return ""
}

// DockerPackages are alternative sets of docker's packages, best first. docker-engine was its name up to 1.13 of
// January 2017; docker-ce-cli and containerd.io are separate since 18.09.
// Source: docs.docker.com/engine/release-notes of 17.03 and 18.09.
func (m Minor) DockerPackages() [][]string {
	if m.NewestDocker() != "" {
		return [][]string{{"docker-engine"}, {"docker-ce"}, {"docker.io"}}
	}
	return [][]string{{"docker-ce", "docker-ce-cli", "containerd.io"}, {"docker.io", "docker-cli"}, {"docker.io"}}
}

// pauseTags are the pause images that kubeadm wants, from the minor where each one begins.
// Source: PauseVersion in kubernetes/cmd/kubeadm/app/constants/constants.go of each minor; before 1.12 defaultSandboxImage in
// pkg/kubelet/dockershim/docker_sandbox.go.
var pauseTags = []struct {
	since int
	tag   string
}{
	{36, "3.10.2"}, {34, "3.10.1"}, {31, "3.10"}, {26, "3.9"}, {25, "3.8"}, {24, "3.7"}, {23, "3.6"}, {22, "3.5"},
	{21, "3.4.1"}, {18, "3.2"}, {10, "3.1"}, {6, "3.0"},
}

// Pause is the tag of registry.k8s.io/pause for a minor.
func (m Minor) Pause() string {
	for _, p := range pauseTags {
		if m.Number >= p.since {
			return p.tag
		}
	}
	return ""
}

// SecuredSince is the first minor whose new clusters get the inventory's `security` settings. By then everything that
// they need is out of beta: the kubelets' seccompDefault since 1.27, Pod Security admission since 1.25, audit.k8s.io/v1
// since 1.12; the admission plugin DenyServiceExternalIPs came with 1.21.
// Sources: kubernetes.io/docs/tutorials/security/seccomp, kubernetes.io/docs/concepts/security/pod-security-admission,
// kubernetes.io/docs/reference/access-authn-authz/admission-controllers.
const SecuredSince = 30

// Secured reports whether the minor is SecuredSince or newer.
func (m Minor) Secured() bool { return m.Number >= SecuredSince }
