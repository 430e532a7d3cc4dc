package plan

import (
	"regexp"
	"slices"
)

// Answer is what becomes of a key of the inventory that gets another value while the cluster runs.
type Answer string

// The answers.
const (
	InPlace    Answer = "changes in place"
	NodeByNode Answer = "changes node by node, each drained before"
	NewNodes   Answer = "only for new nodes"
	NotHere    Answer = "not on this cluster"
)

// Change is the answer for some keys.
type Change struct {
	Keys   []string
	Answer Answer
	Steps  []string // that it may take, as path.Match has patterns; none: nothing on any host
	Says   string   // what it disrupts; of what is refused the way to go
}

const (
	madeAnew   = "leave the key out, and what the cluster was made with counts; a cluster with something else takes `kgpu reset` and `kgpu up`"
	joinedAnew = "write what runs into the inventory; a worker with something else takes `kgpu remove-worker` and `kgpu add-worker`, " +
		"one of several control planes `kgpu remove-control-plane` and `kgpu add-control-plane`, the only one `kgpu reset` and `kgpu up`"
	byHand  = madeAnew + ". Who changes it by hand, as https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/ says, removes the file that the message names"
	secured = madeAnew + ". By hand: docs/security.md, \"A cluster that exists\""
)

// The steps that the cards' offer, and the notebook's, take.
var (
	offerSteps    = []string{"addon/device-plugin", "gpu/ready", "gpu/features", "gpu/labels", "addon/notebook"}
	notebookSteps = []string{"addon/notebook", "addon/notebook-remove", "gpu/ready"}
)

// Changes answers for every key of the inventory.
var Changes = []Change{
	{[]string{"cluster", "network", "kubernetes.podCIDR", "kubernetes.serviceCIDR"}, NotHere, nil, madeAnew},
	{[]string{"runtime"}, NotHere, nil, joinedAnew},
	{[]string{"kubernetes.controlPlaneEndpoint"}, NotHere, nil, "it is in the certificates of all control planes and in the kubeconfigs of all kubelets: " + madeAnew + ". By hand: docs/troubleshooting.md, \"A cluster that cannot grow\""},
	{[]string{"kubernetes.virtualIP"}, InPlace, []string{"os/keepalived", "os/hosts", "certs/renew"},
		"nothing, where there was none: a control plane gets the address, all hosts find the API server there, and it restarts with a certificate that has it. " +
			"Refused are another one, or none, where there is one, and one where nodes know the API server by an address or by a name of yours"},
	{[]string{"kubernetes.featureGates", "kubernetes.kubeletConfiguration", "kubernetes.kubeProxyConfiguration"}, NotHere, nil, byHand},
	{[]string{"kubernetes.clusterConfiguration"}, NotHere, nil, byHand + ". Only the names of the API server in it (certSANs) may change: docs/operations.md, \"Certificates\""},
	{[]string{"security.podSecurity", "security.auditLog", "security.encryptSecrets"}, NotHere, nil, secured},
	{[]string{"kubernetes.ignorePreflightErrors"}, NewNodes, nil, "kubeadm checks a host when it joins"},
	{[]string{"kubernetes.allowEndOfLife"}, InPlace, nil, "nothing: it is for kgpu itself"},

	{[]string{"swap"}, InPlace, []string{"os/swap"}, "nothing; what was turned off stays off"},
	{[]string{"proxy.http", "proxy.https", "proxy.noProxy"}, NodeByNode, []string{"os/proxy", "node/drain", "node/uncordon", "gpu/ready"}, "docker restarts, and every container with it; with containerd no node is drained. Without any proxy in the file hosts keep what they have"},
	{[]string{"images.registry"}, InPlace,
		slices.Concat([]string{"runtime/containerd", "runtime/cri-dockerd", "addon/calico", "addon/flannel", "addon/weave", "cluster/ready"}, offerSteps),
		"the pod network, the device plugin and the notebook start anew, node by node; the control plane's own images stay where they came from"},

	{[]string{"kubernetes.version"}, NodeByNode,
		[]string{"repo/kubernetes", "kube/kubeadm", "kube/upgrade", "cluster/snapshot", "cluster/upgrade", "cluster/ready", "node/drain", "node/uncordon", "gpu/ready"},
		"a newer version comes minor after minor; with one control plane its API is away for about a minute each time; the cards are proven anew. An older version is refused. From Kubernetes 1.30 on: docs/operations.md"},
	{[]string{"gpu.driver.source", "gpu.driver.branch", "gpu.driver.flavour"}, NodeByNode,
		[]string{"driver/*", "node/drain", "node/uncordon", "repo/*", "gpu/toolkit", "gpu/ready", "gpu/features", "gpu/labels", "gpu/cuda", "addon/notebook"}, "pods leave the node; it reboots where the old modules cannot be unloaded; the cards are proven anew"},
	{[]string{"gpu.cuda", "gpu.cudnn"}, InPlace, []string{"gpu/cuda", "repo/cuda"}, "nothing"},
	{[]string{"gpu.migStrategy", "gpu.timeSlicing.replicas", "gpu.mps.replicas"}, InPlace, offerSteps, "the device plugin starts anew, pods that run keep their cards; the cards are proven anew, and the notebook restarts"},
	{[]string{"notebook.framework", "notebook.version", "notebook.image", "notebook.nodePort", "notebook.storage", "notebook.idleTimeout"}, InPlace, notebookSteps, "the notebook restarts"},

	{[]string{"backup.schedule", "backup.keep", "backup.to"}, InPlace, []string{"backup/timer", "backup/timer-remove"}, "nothing; a backup is made at once. Archives stay where they are: those in a former directory are yours to remove"},

	{[]string{"repositories.kubernetes.url", "repositories.nvidiaContainerToolkit.url"}, InPlace, []string{"repo/*"}, "nothing: what is installed stays"},
	{[]string{
		"repositories.kubernetes.keyURL", "repositories.kubernetes.fingerprint", "repositories.nvidiaContainerToolkit.keyURL", "repositories.nvidiaContainerToolkit.fingerprint",
		"repositories.docker.url", "repositories.docker.keyURL", "repositories.docker.fingerprint",
		"repositories.cuda.url", "repositories.cuda.keyURL", "repositories.cuda.fingerprint",
		"repositories.graphicsDrivers.url", "repositories.graphicsDrivers.keyURL", "repositories.graphicsDrivers.fingerprint",
		"repositories.criDockerd.url", "repositories.criDockerd.sha256",
	}, NewNodes, nil, "what is installed stays; nodes that get something more from there, or a new key, take it too"},
	{[]string{"repositories.calico.url"}, InPlace, nil, "nothing: it is where the same manifest comes from"},
	{[]string{"repositories.calico.sha256"}, InPlace, []string{"addon/calico", "cluster/ready"}, "calico starts anew, node by node"},

	{[]string{"hosts[].address"}, InPlace, []string{"certs/renew"}, "a control plane's gets into the certificate of its API server, which restarts; else nothing: it is how kgpu reaches the same machine; a part of `proxy.noProxy`, where there is a proxy"},
	{[]string{"hosts[].name", "hosts[].privateAddress", "hosts[].role"}, NotHere, nil, joinedAnew},
	{[]string{"hosts[].labels"}, InPlace, []string{"cluster/nodes"}, "nothing; those that are taken out of the file stay on the node"},
	{[]string{"hosts[].taints"}, InPlace, []string{"cluster/nodes", "addon/notebook"}, "pods that run, where the effect is NoExecute; the notebook restarts; those that are taken out of the file stay on the node"},

	{[]string{
		"preflight.ignore", "timeouts.link", "timeouts.reboot", "timeouts.lock", "timeouts.transient",
		"ssh.user", "ssh.port", "ssh.key", "ssh.passphrase", "ssh.agent", "ssh.knownHosts", "ssh.hostKeyPolicy", "ssh.hostKey", "ssh.sudoPassword",
		"ssh.bastion.address", "ssh.bastion.user", "ssh.bastion.port", "ssh.bastion.key", "ssh.bastion.passphrase", "ssh.bastion.agent",
		"ssh.bastion.knownHosts", "ssh.bastion.hostKeyPolicy", "ssh.bastion.hostKey", "ssh.bastion.bastion", "hosts[].ssh",
	}, InPlace, nil, "nothing: it is for kgpu itself"},
}

var index = regexp.MustCompile(`\[\d+\]`)

// ChangeOf is the row of a key; that of a host's may name the host: hosts[2].name.
func ChangeOf(key string) (Change, bool) {
	key = index.ReplaceAllString(key, "[]")
	i := slices.IndexFunc(Changes, func(c Change) bool { return slices.Contains(c.Keys, key) })
	if i < 0 {
		return Change{}, false
	}
	return Changes[i], true
}
