package reason

// Reasons of the cluster: whose a host is, control planes, nodes, certificates, versions.
const (
	HostForeignCluster      ID = "HOST_FOREIGN_CLUSTER"
	HostMadeByHand          ID = "HOST_MADE_BY_HAND"
	HostHalfMade            ID = "HOST_HALF_MADE"
	HostEtcdStale           ID = "HOST_ETCD_STALE"
	HostAPIName             ID = "HOST_API_NAME"
	HostNotInInventory      ID = "HOST_NOT_IN_INVENTORY"
	ClusterQuorumLost       ID = "CLUSTER_QUORUM_LOST"
	ClusterSettingFixed     ID = "CLUSTER_SETTING_FIXED"
	KubernetesVersionChange ID = "KUBERNETES_VERSION_CHANGE"
	KubernetesSkew          ID = "KUBERNETES_SKEW"
	EtcdTooOld              ID = "ETCD_TOO_OLD"
	UpgradeFailed           ID = "UPGRADE_FAILED"
	UpgradeSnapshot         ID = "UPGRADE_SNAPSHOT"
	HostCertificateEnds     ID = "HOST_CERTIFICATE_ENDS"
	CertificateNotRenewed   ID = "CERTIFICATE_NOT_RENEWED"
	KubeletCertificateEnded ID = "KUBELET_CERTIFICATE_ENDED"
	APIUnreachable          ID = "API_UNREACHABLE"
	NodeNotReady            ID = "NODE_NOT_READY"
	NodePressure            ID = "NODE_PRESSURE"
	NodeDrainBlocked        ID = "NODE_DRAIN_BLOCKED"
	NodeUnknown             ID = "NODE_UNKNOWN"
	PodStuck                ID = "POD_STUCK"
)

var clusterReasons = []Reason{
	{HostForeignCluster, 69,
		"The host is a node of another cluster, has another kind of Kubernetes on it (k3s, microk8s …), or was set up with kubeadm by somebody else. kgpu tells clusters apart by their certificates; of another kind of Kubernetes it wants to see that it runs, or two signs of it: a directory that was left is only told.",
		"the host belongs to another cluster: where nobody needs it, `kubeadm reset` there first, or the uninstaller of the other kind of Kubernetes, which the message names; kgpu takes nothing over"},
	{HostMadeByHand, 38,
		"The host works in a cluster, and it was not kgpu that made it a part of that: somebody ran kubeadm by hand. The message has the evidence, and what does not fit the inventory if it cannot be taken over.",
		"`kgpu up --adopt` takes it over as it is, where the message does not say why it cannot; or `kubeadm reset` there, if nobody needs it"},
	{HostHalfMade, 39,
		"There is a part of a cluster on the host that does not work, and that kgpu did not leave there: a control plane without answer, or files of kubeadm without a node.",
		"see whose it is (`ls -l /etc/kubernetes`, `journalctl -u kubelet` on the host); where nobody needs it: `kubeadm reset` there, or `kgpu reset` where kgpu made it"},
	{HostEtcdStale, 41,
		"The host has the data of an etcd, with all that a cluster knew, and no cluster around it. kubeadm would refuse to begin, and nobody but you knows whether the data is needed.",
		"where nobody needs the data: remove /var/lib/etcd/member; else keep a copy elsewhere, or bring back the /etc/kubernetes that belongs to it"},
	{HostAPIName, 230,
		"The host does not know the cluster's API server by its name, or the name leads it somewhere else. The kubelet and kube-proxy reach the API server by that name, which kgpu keeps as a line in /etc/hosts.",
		"on the host, `getent ahosts NAME` says where the name leads: remove other lines of that name from /etc/hosts, have `files` come first in the line `hosts:` of /etc/nsswitch.conf, then run `kgpu up`"},
	{HostNotInInventory, 47,
		"The cluster has a node, and the inventory no host that it is. Nothing that kgpu does reaches it.",
		"add the host to the inventory, or take it out of the cluster: `kubectl drain` and `kubectl delete node`"},
	{ClusterQuorumLost, 248,
		"Fewer than a majority of the control planes can be reached. etcd writes nothing without its majority, so that the API server changes nothing; what runs on the nodes goes on. kgpu changes nothing either, because another kgpu could have the others.",
		"bring back the control planes that are down: their power, their network, their kubelet; docs/operations.md says what to do when they never come back"},
	{ClusterSettingFixed, 241,
		"The inventory wants something else than the cluster that runs, of what a cluster or a node keeps as it was made with: the message names the key, its place in the file, what runs and what is wanted. Nothing is planned, and no option changes that. docs/inventory.md has all keys and what becomes of them while the cluster runs.",
		"write what runs into the inventory, or leave the key out: then what runs counts; a cluster made with something else takes `kgpu reset` and `kgpu up`"},
	{KubernetesVersionChange, 43,
		"The inventory wants another version of Kubernetes than the cluster runs, and the cluster cannot be brought there: it is an older one, the cluster is older than what kgpu upgrades, or it runs one that this kgpu does not know. Nothing is planned, and no option changes that.",
		"write the version that the cluster runs into the inventory as `kubernetes: {version: …}`, or leave `version` out: then the cluster's own counts; for a version that kgpu does not know, take a newer kgpu"},
	{KubernetesSkew, 243,
		"An upgrade of the control plane would leave a node further behind than Kubernetes supports, which is three minor versions, or a node has a newer minor version than the control plane is to get. Such a node may be one that the inventory does not have. Nothing is planned.",
		"upgrade the node that the message names first, or take it out of the cluster (`kgpu remove-worker`, `kubectl delete node`)"},
	{EtcdTooOld, 244,
		"The cluster's etcd is an older 3.5 than the one that etcd 3.6 may follow: members that were removed could come back in the new one. Nothing is planned.",
		"upgrade to the newest patch of the minor version that runs first, which may bring a newer etcd; else give etcd the tag 3.5.26-0 (etcd, local, imageTag in `kubectl -n kube-system edit configmap kubeadm-config`), and on the control plane run `kubeadm upgrade apply` for the version that runs"},
	{UpgradeFailed, 210,
		"kubeadm could not upgrade the control plane or the kubelet's configuration of a node. A control plane that does not get up with the new version has its former one back, as kubeadm puts it there; nodes that were not reached keep theirs.",
		"look at what kubeadm said (`kgpu runs logs`), and at `kubectl -n kube-system get pods` on the control plane; then run the same command again, which goes on where this stopped"},
	{UpgradeSnapshot, 211,
		"etcd gave no snapshot, or what came is not whole. An upgrade of the control plane does not begin without one.",
		"see whether etcd is well (`kubectl -n kube-system logs etcd-NODE` for the control plane's node); then run the same command again"},
	{HostCertificateEnds, 46,
		"A certificate of Kubernetes on the host ends soon, has ended, or cannot be read: `kgpu doctor` says so 60 days before the end, `kgpu status` 30. When it has ended, those who show it are refused: the kubelet, the API server, or you.",
		"`kgpu certs` shows all certificates and who renews them; `kgpu certs renew` renews those of the control planes; where a kubelet did not renew its own, `journalctl -u kubelet` there says why"},
	{CertificateNotRenewed, 95,
		"kubeadm did not make new certificates on a control plane. Where the key of a certificate authority is not on the host (an external CA), nobody but its owner can. What was there before is there again.",
		"look at the words of kubeadm above. With an external CA, have new certificates made where its key is and put them into /etc/kubernetes; `kgpu up` then has the control plane use them"},
	{KubeletCertificateEnded, 96,
		"The certificate of a kubelet has ended, and it did not get another in time: it asks the API server with a token, and the controller manager signs.",
		"`journalctl -u kubelet` on the host says what it meets, `kubectl get csr` whether its request was approved; then run `kgpu up` again"},
	{APIUnreachable, 87,
		"The Kubernetes API server, which runs on the control plane at port 6443, did not answer in time, or could not be reached from the host that wanted to join.",
		"check that nothing blocks port 6443 between the hosts"},
	{NodeNotReady, 88,
		"A host joined, and its node did not appear in the cluster or did not get ready in time. The kubelet reports readiness; it waits for the runtime and the pod network.",
		"`kubectl describe node` and `journalctl -u kubelet` on the host say why"},
	{NodePressure, 235,
		"The kubelet finds too little room on the node's disks (DiskPressure), too little memory (MemoryPressure), or too many processes (PIDPressure). Until that is over the node takes no new pods, and the kubelet ends some of those that it has.",
		"make room on the node: `df -h` and `free -m` there, `kubectl describe node` for the kubelet's words; it takes pods again some minutes after"},
	{NodeDrainBlocked, 90,
		"The node has pods that would be lost, because nothing starts them again elsewhere, or that do not go away in time, because a disruption budget keeps them; or pods with GPUs have come since the plan was shown, when it had none, so that nobody agreed to their end. The node takes pods again as before, and what it was to be drained for was not done.",
		"end the pods named above, or loosen their disruption budget, then run the same command again; it asks about pods that have come meanwhile"},
	{NodeUnknown, 91,
		"A worker that cannot be asked for its name is to leave the cluster: the inventory does not give its name either, none of the nodes has its address, and there are nodes that no other host of the inventory accounts for.",
		"write the `name:` of its node, one of those named above, into the inventory, then run the same command again"},
	{PodStuck, 93,
		"A pod of the cluster itself, in a namespace kube-… or kgpu-…, does not come by waiting: its image cannot be pulled, what it is configured with is not there, it ends again and again, or no node takes it.",
		"`kubectl -n NAMESPACE describe pod POD` says why; of one that ends again and again, `kubectl -n NAMESPACE logs POD --all-containers`"},
}
