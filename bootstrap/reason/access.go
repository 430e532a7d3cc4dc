package reason

// Reasons of the way into a cluster: kubeconfigs, users, the dashboard.
const (
	KubeconfigConflict   ID = "KUBECONFIG_CONFLICT"
	KubeconfigUnwritable ID = "KUBECONFIG_UNWRITABLE"
	KubeconfigUntrusted  ID = "KUBECONFIG_UNTRUSTED"
	ClusterMissing       ID = "CLUSTER_MISSING"
	UserRefused          ID = "USER_REFUSED"
	UserRightsLeft       ID = "USER_RIGHTS_LEFT"
	DashboardFailed      ID = "DASHBOARD_FAILED"
)

var accessReasons = []Reason{
	{KubeconfigConflict, 14,
		"Your kubeconfig has a cluster, a user or a context of the same name that belongs to another cluster, and that kgpu did not make of this inventory; or the file that kgpu was to write is there, with something else in it. Nothing was changed in it.",
		"rename the other entry (`kubectl config rename-context`), give the cluster another name (`cluster:` in the inventory), or use a file of its own: `kgpu kubeconfig --file FILE`"},
	{KubeconfigUnwritable, 15,
		"A kubeconfig on this machine cannot be read or written, is not one, or another program changes it just now.",
		"look at the file named above, its folder and who owns them; `kgpu kubeconfig --file FILE` takes another one"},
	{KubeconfigUntrusted, 12,
		"The administrator's kubeconfig on the control plane is not one that kubeadm makes: it has something else in it than a server, a certificate authority, a certificate and its key, or those do not belong together. Such a file can have kubectl run programs and send files of the machine that it is used on, so kgpu wrote none.",
		"ask who changed it; where nobody did, the host is not to be trusted. `kubeadm init phase kubeconfig admin` on the control plane makes it anew when it was moved away"},
	{ClusterMissing, 16,
		"The control plane was reached, and there is no cluster on it: it has no kubeconfig of an administrator.",
		"`kgpu up` makes the cluster, `kgpu plan` says what is missing"},
	{UserRefused, 17,
		"The API server refused an object that a user needs, or nobody in the cluster signed the user's certificate. The message has the words of the API server.",
		"look at the words above; `kubectl get certificatesigningrequests` and `kubectl -n kube-system logs -l component=kube-controller-manager` say more; the same command begins again"},
	{UserRightsLeft, 13,
		"A user was deleted, and the API server says that who has their certificate still has rights: by a binding that names others, too, or all users, or by a group, which kgpu leaves to its owner. The message says what they may, and names the bindings that kgpu knows of.",
		"take the user out of the bindings named above (`kubectl edit`), or delete these; `kgpu user delete NAME` looks again"},
	{DashboardFailed, 18,
		"The API server refused the dashboard, its pod did not get ready in time, or its namespace did not go away.",
		"`kubectl -n kgpu-dashboard describe pods` says why; the same command carries on, and `kgpu dashboard --remove` takes it away"},
}
