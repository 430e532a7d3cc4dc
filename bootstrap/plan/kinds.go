package plan

import (
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/graph"
)

// Timeouts of the scripts. They bound a hang, they are not expectations: a slow mirror or machine must fit in.
const (
	short  = 2 * time.Minute
	medium = 10 * time.Minute
	long   = 30 * time.Minute
)

const (
	fixes     = "`kgpu doctor --fix`"
	restores  = "`kgpu restore`, with the same archive"
	transient = graph.Transient
)

// Kinds are the kinds of all steps that there are.
var Kinds = slices.Concat(addonKinds(), graph.Kinds{
	{ID: "backup/clear", Title: "remove what a backup took of the host", Script: "backup-clear", Timeout: short, Resumes: "`kgpu backup`"},
	{ID: "backup/take", Title: "take a snapshot of etcd, and what else a backup has", Script: "backup-take", Retry: transient, Timeout: long, Resumes: "`kgpu backup`"},
	{ID: "backup/timer", Title: "have the control plane make backups by itself", Script: "backup-timer", Timeout: short},
	{ID: "backup/timer-remove", Title: "end the backups that the control plane makes by itself", Script: "backup-timer-remove", Timeout: short},
	{ID: "certs/kubelet", Title: "give the kubelet a new certificate", Script: "certs-kubelet", Timeout: medium},
	{ID: "certs/renew", Title: "renew the certificates of the control plane", Script: "certs-renew", Retry: transient, Timeout: 20 * time.Minute},

	{ID: "cluster/adopt", Title: "take over what was made by hand", Script: "cluster-adopt", Timeout: short},
	{ID: "cluster/init", Title: "start the control plane (kubeadm init)", Script: "cluster-init", Retry: transient, Timeout: long},                          // kubeadm init itself is not tried again
	{ID: "cluster/join", Title: "join the cluster (kubeadm join)", Script: "cluster-join", Retry: transient, Timeout: medium},                               // nor is kubeadm join
	{ID: "cluster/join-control-plane", Title: "become another control plane (kubeadm join)", Script: "cluster-join-plane", Retry: transient, Timeout: long}, // nor is this
	{ID: "cluster/nodes", Title: "set labels and taints", Script: "cluster-nodes", Retry: transient, Timeout: short},
	{ID: "cluster/ready", Title: "wait until all nodes, the pod network and DNS are ready", Script: "cluster-ready", Timeout: 15 * time.Minute}, // slow links pull images for minutes
	{ID: "cluster/snapshot", Title: "keep a snapshot of etcd", Script: "cluster-snapshot", Retry: transient, Timeout: long},
	{ID: "cluster/token", Title: "make a short-lived bootstrap token", Script: "cluster-token", Retry: transient, Timeout: short},
	{ID: "cluster/untoken", Title: "delete the bootstrap token", Script: "cluster-untoken", Retry: transient, Timeout: short},
	{ID: "cluster/upgrade", Title: "upgrade the control plane (kubeadm upgrade)", Script: "cluster-upgrade", Retry: transient, Timeout: 45 * time.Minute}, // kubeadm waits 5 minutes for each of four parts, and for images

	{ID: "doctor/hold", Title: "hold packages again", Script: "doctor-hold", Timeout: short, Resumes: fixes},
	{ID: "doctor/module", Title: "load the driver", Script: "driver-load", Timeout: medium, Resumes: fixes},
	{ID: "doctor/plugin", PerNode: true, Title: "restart the device plugin of a node", Script: "doctor-plugin", Timeout: medium, Resumes: fixes},
	{ID: "doctor/units", Title: "start units that are down", Script: "doctor-units", Timeout: medium, Resumes: fixes},
	{ID: "doctor/watch", Title: "check the cards every minute", Script: "doctor-watch", Timeout: short, Resumes: "`kgpu doctor --install-watch`"},

	{ID: "driver/fabric", Title: "set up the fabric of the cards", Disrupts: true, Script: "driver-fabric", Retry: transient, Timeout: medium},
	{ID: "driver/fetch", Title: "download a driver that replaces another", Script: "driver-fetch", Retry: transient, Timeout: long},
	{ID: "driver/install", Title: "install the driver", Disrupts: true, Script: "driver-install", Retry: transient, Timeout: 45 * time.Minute}, // DKMS compiles for minutes on a small machine
	{ID: "driver/load", Title: "load the driver and see all cards", Disrupts: true, Script: "driver-load", Timeout: medium},
	{ID: "driver/nouveau", Title: "keep nouveau off the cards", Script: "driver-nouveau", Timeout: medium},
	{ID: "driver/reboot", Title: "reboot", Disrupts: true, Script: "driver-reboot", Timeout: 20 * time.Minute},
	{ID: "driver/remove", Title: "remove another driver", Disrupts: true, Script: "driver-remove", Timeout: long},

	{ID: "gpu/accelerators", Title: "restart the kubelet, so that it looks for cards", Script: "gpu-accelerators", Timeout: medium},
	{ID: "gpu/cuda", Title: "install CUDA", Script: "gpu-cuda", Retry: transient, Timeout: 2 * time.Hour}, // gigabytes, over whatever line the host has
	{ID: "gpu/features", Title: "read what is found out about the cards", Script: "gpu-features", Timeout: medium},
	{ID: "gpu/labels", Title: "label nodes with their cards", Script: "cluster-nodes", Retry: transient, Timeout: short},
	{ID: "gpu/proven", Title: "remember that the cards were proven", Script: "gpu-proven", Retry: transient, Timeout: short},
	{ID: "gpu/ready", Title: "wait until all cards can be had", Script: "gpu-ready", Timeout: 15 * time.Minute},
	{ID: "gpu/smoke", Title: "compute on every card", Script: "gpu-smoke", Retry: transient, Timeout: 30 * time.Minute}, // its image is pulled by every node
	{ID: "gpu/toolkit", Title: "install the container toolkit", Script: "gpu-toolkit", Retry: transient, Timeout: medium},

	{ID: "host/leftovers", Title: "remove what a former pod network left", Script: "host-leftovers", Timeout: short},
	{ID: "host/reset", Title: "kubeadm reset, then undo what kgpu changed", Script: "host-reset", Timeout: long, Resumes: "the `kgpu reset` or `kgpu remove-worker` that it was"},

	{ID: "kube/kubeadm", Title: "install kubeadm", Script: "kube-packages", Retry: transient, Timeout: long},
	{ID: "kube/packages", Title: "install kubelet, kubeadm and kubectl", Script: "kube-packages", Retry: transient, Timeout: long},
	{ID: "kube/start", Title: "start the kubelet", Script: "kube-start", Timeout: short},
	{ID: "kube/upgrade", Title: "upgrade the kubelet", Disrupts: true, Script: "kube-upgrade", Retry: transient, Timeout: long},

	{ID: "node/delete", PerNode: true, Title: "delete a node", Script: "node-delete", Retry: transient, Timeout: short},
	{ID: "node/drain", PerNode: true, Title: "drain a node", Script: "node-drain", Timeout: long}, // pods may have long graces
	{ID: "node/etcd-remove", PerNode: true, Title: "take a lost control plane out of etcd", Script: "etcd-remove", Retry: transient, Timeout: short},
	{ID: "node/uncordon", PerNode: true, Title: "uncordon a node: it has pods again", Script: "node-uncordon", Timeout: 15 * time.Minute},

	{ID: "os/dpkg", Title: "finish an interrupted installation", Script: "os-dpkg", Retry: transient, Timeout: long},
	{ID: "os/hosts", Title: "give the API server a name (/etc/hosts)", Script: "os-hosts", Timeout: medium},
	{ID: "os/keepalived", Title: "give the virtual address to a control plane that works", Script: "os-keepalived", Retry: transient, Timeout: medium},
	{ID: "os/modules", Title: "load kernel modules", Script: "os-modules", Timeout: short},
	{ID: "os/packages", Title: "install basic packages", Script: "os-packages", Retry: transient, Timeout: long},
	{ID: "os/proxy", Title: "use the proxy for packages and images", Script: "os-proxy", Timeout: short},
	{ID: "os/swap", Title: "turn swap off", Script: "os-swap", Timeout: short},
	{ID: "os/sysctl", Title: "set kernel settings", Script: "os-sysctl", Timeout: short},
	{ID: "os/time", Title: "keep the clock right", Script: "os-time", Retry: transient, Timeout: medium},

	{ID: "repo/cuda", Title: "add the package repository of NVIDIA's drivers and CUDA", Script: "repository", Retry: transient, Timeout: medium},
	{ID: "repo/debian", Title: "add the components of Debian's that drivers are in", Script: "repo-debian", Retry: transient, Timeout: medium},
	{ID: "repo/docker", Title: "add the package repository of Docker", Script: "repository", Retry: transient, Timeout: medium},
	{ID: "repo/graphics-drivers", Title: "add the package repository of the graphics-drivers PPA", Script: "repository", Retry: transient, Timeout: medium},
	{ID: "repo/kubernetes", Title: "add the package repository of Kubernetes", Script: "repository", Retry: transient, Timeout: medium},
	{ID: "repo/nvidia-container-toolkit", Title: "add the package repository of the NVIDIA container toolkit", Script: "repository", Retry: transient, Timeout: medium},

	{ID: "restore/begin", Title: "make room for a backup", Script: "restore-begin", Timeout: short, Resumes: restores},
	{ID: "restore/data", Title: "give the control plane the data of a backup", Script: "restore-data", Timeout: long, Resumes: restores},
	{ID: "restore/end", Title: "see which nodes are there, and remove what was sent for the restore", Script: "restore-end", Timeout: 5 * time.Minute, Resumes: restores},
	{ID: "restore/kubelet", Title: "restart the kubelet: pods that the backup does not know end", Script: "restore-kubelet", Timeout: short, Resumes: restores},

	{ID: "runtime/containerd", Title: "install and set up containerd", Script: "runtime-containerd", Retry: transient, Timeout: long},
	{ID: "runtime/cri-dockerd", Title: "install cri-dockerd", Script: "runtime-cri-dockerd", Retry: transient, Timeout: medium},
	{ID: "runtime/docker", Title: "install and set up docker", Script: "runtime-docker", Retry: transient, Timeout: long},

	{ID: "user/create", Title: "let a user work in a namespace", Script: "user-create", Retry: transient, Timeout: medium, Resumes: "`kgpu user create`"},
	{ID: "user/delete", Title: "take all rights from a user", Script: "user-delete", Retry: transient, Timeout: medium, Resumes: "`kgpu user delete`"},
})
