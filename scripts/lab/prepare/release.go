package prepare

import "strings"

// release is one Kubernetes version and what its kubeadm asks for (cmd/kubeadm/app/constants in k8s.io/kubernetes).
type release struct {
	version    string // without the v
	etcd       string // version of the etcd module that is built
	etcdTag    string // tag of the image kubeadm asks for
	coredns    string // version of the CoreDNS module that is built
	corednsTag string // tag of the image kubeadm asks for
	repository string // URL path of the package repository: host/path
	unitDir    string // where the kubelet package puts its unit
	generated  bool   // kube-apiserver needs a file that its module lacks: see complete
	of         string // version of the build that says it is this one, see stamped; empty: it is built
}

var (
	release136 = release{
		version: "1.36.3", etcd: "3.6.8", etcdTag: "3.6.8-0", coredns: "1.14.2", corednsTag: "v1.14.2",
		repository: "pkgs.k8s.io/core:/stable:/v1.36/deb", unitDir: "usr/lib/systemd/system",
	}
	release135 = release{
		version: "1.35.4", etcd: "3.6.8", etcdTag: "3.6.6-0", coredns: "1.14.2", corednsTag: "v1.13.1",
		repository: "pkgs.k8s.io/core:/stable:/v1.35/deb", unitDir: "usr/lib/systemd/system",
	}
	// pkgs.k8s.io starts at 1.24: older versions come from a company's mirror.
	release123 = release{
		version: "1.23.17", etcd: "3.5.6", etcdTag: "3.5.6-0", coredns: "1.14.2", corednsTag: "v1.8.6",
		repository: "mirror.example.internal/kubernetes/v1.23/deb", unitDir: "lib/systemd/system", generated: true,
	}
)

// release136Before is the patch that an upgrade begins with.
var release136Before = release136.stamped("1.36.2")

// stamped is a release that differs from this one by nothing but the version that its programs say they have.
func (r release) stamped(version string) release {
	r.version, r.of = version, r.version
	return r
}

// Tags of the pause image that the versions of kubeadm, containerd and cri-dockerd in the lab ask for by default.
var pauseTags = []string{"3.6", "3.8", "3.9", "3.10", "3.10.1", "3.10.2"}

func (r release) minor() string { return strings.Split(r.version, ".")[1] }
