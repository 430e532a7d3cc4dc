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

// These are the minors in which features that kgpu uses were added, with their places in k8s.io/kubernetes.
const (
	osLabelSince         = 14 // pkg/kubelet: kubernetes.io/os
	priorityAnywhere     = 17 // plugin/pkg/admission/priority: the system's classes outside of kube-system
	hostPathTypeSince    = 8  // HostPathVolumeSource.Type
	backoffLimitSince    = 8  // JobSpec.BackoffLimit
	serviceLinksSince    = 13 // PodSpec.EnableServiceLinks
	priorityClassSince   = 11 // PodPriority is on, and the system's classes are there
	kubeletConfigSince   = 11 // kubeadm writes a KubeletConfiguration, and the packaged unit reads it
	coreDNSSince         = 11 // cmd/kubeadm/app/features: CoreDNS is GA
	discoveryHashSince   = 8  // NodeConfiguration.DiscoveryTokenCACertHashes
	nodeNameSince        = 7  // MasterConfiguration.NodeName; 1.6 takes the host's own
	controlEndpointSince = 11 // API.ControlPlaneEndpoint with a port
	imageRepositorySince = 8  // MasterConfiguration.ImageRepository; before, the environment of kubeadm
	ignorePreflightSince = 9  // kubeadm --ignore-preflight-errors; before, only all checks can be skipped
	ignoreInFileSince    = 15 // NodeRegistrationOptions.IgnorePreflightErrors, v1beta2
	cniListSince         = 7  // pkg/kubelet/network/cni: *.conflist
	dnsFolderSince       = 21 // cmd/kubeadm/app/images: CoreDNS is coredns/coredns
	cgroupV2Since        = 19 // pkg/kubelet/cm: IsCgroup2UnifiedMode
	cdiDevicesSince      = 29 // DevicePluginCDIDevices is on
	dockerSplitSince     = 14 // docker 18.09, the first with docker-ce-cli and containerd.io
)

// ContainerdTwoSince is the first minor whose kubelet refuses a containerd before 2: it asks the runtime for its cgroup
// driver and ignores its own setting. Source: kubernetes/kubernetes pull request 136731, kubernetes/website 55954.
const ContainerdTwoSince = 38

// HasHostPathType reports whether a hostPath volume has a type.
func (m Minor) HasHostPathType() bool { return m.Number >= hostPathTypeSince }

// HasBackoffLimit reports whether a Job has a backoffLimit.
func (m Minor) HasBackoffLimit() bool { return m.Number >= backoffLimitSince }

// HasServiceLinks reports whether a pod has enableServiceLinks.
func (m Minor) HasServiceLinks() bool { return m.Number >= serviceLinksSince }

// HasPriorityClasses reports whether the class system-node-critical exists.
func (m Minor) HasPriorityClasses() bool { return m.Number >= priorityClassSince }

// HasOSLabel reports whether nodes have the label kubernetes.io/os.
func (m Minor) HasOSLabel() bool { return m.Number >= osLabelSince }

// TakesPriorityAnywhere reports whether pods outside of kube-system may be system-node-critical.
func (m Minor) TakesPriorityAnywhere() bool { return m.Number >= priorityAnywhere }

// PassesCDIDevices reports whether the kubelet passes on the CDI devices that a device plugin names.
func (m Minor) PassesCDIDevices() bool { return m.Number >= cdiDevicesSince }

// HasKubeletConfig reports whether kubeadm configures the kubelet by a file; before, it uses flags in a drop-in.
func (m Minor) HasKubeletConfig() bool { return m.Number >= kubeletConfigSince }

// DNS is the name of the cluster DNS's Deployment in kube-system.
func (m Minor) DNS() string {
	if m.Number < coreDNSSince {
		return "kube-dns"
	}
	return "coredns"
}

// HasDiscoveryHash reports whether kubeadm join can verify the API server by the CA's hash.
func (m Minor) HasDiscoveryHash() bool { return m.Number >= discoveryHashSince }

// HasNodeName reports whether kubeadm lets a node have another name than its host.
func (m Minor) HasNodeName() bool { return m.Number >= nodeNameSince }

// HasControlPlaneEndpoint reports whether kubeadm has controlPlaneEndpoint.
func (m Minor) HasControlPlaneEndpoint() bool { return m.Number >= controlEndpointSince }

// namesAPISince is the first minor whose new clusters get a name for their API server. kubeadm supports names since
// controlEndpointSince, but kgpu's new features are for supported minors only.
const namesAPISince = 30

// NamesAPI reports whether kgpu gives a new cluster's API server a name.
func (m Minor) NamesAPI() bool { return m.Number >= namesAPISince }

// HasImageRepository reports whether kubeadm's configuration has imageRepository.
func (m Minor) HasImageRepository() bool { return m.Number >= imageRepositorySince }

// HasIgnorePreflightErrors reports whether kubeadm can ignore single checks.
func (m Minor) HasIgnorePreflightErrors() bool { return m.Number >= ignorePreflightSince }

// IgnoresInFile reports whether kubeadm's configuration names the ignored checks; before, a flag does.
func (m Minor) IgnoresInFile() bool { return m.Number >= ignoreInFileSince }

// ReadsCNILists reports whether the kubelet reads CNI configuration lists (*.conflist).
func (m Minor) ReadsCNILists() bool { return m.Number >= cniListSince }

// DNSHasFolder reports whether the image of the cluster's DNS is in a subfolder of the registry.
func (m Minor) DNSHasFolder() bool { return m.Number >= dnsFolderSince }

// KnowsCgroupV2 reports whether the kubelet works on hosts with cgroup v2.
func (m Minor) KnowsCgroupV2() bool { return m.Number >= cgroupV2Since }

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
	case m.Number < dockerSplitSince:
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
