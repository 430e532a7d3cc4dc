package reason

// Reasons of the network of hosts and of pods.
const (
	HostPortTaken        ID = "HOST_PORT_TAKEN"
	HostFirewallActive   ID = "HOST_FIREWALL_ACTIVE"
	HostResolverUnusable ID = "HOST_RESOLVER_UNUSABLE"
	HostPodNetworkLeft   ID = "HOST_POD_NETWORK_LEFT"
	HostIPTablesLegacy   ID = "HOST_IPTABLES_LEGACY"
	NetRangeOverlap      ID = "NET_RANGE_OVERLAP"
	NetPortBlocked       ID = "NET_PORT_BLOCKED"
	NetNameUnresolved    ID = "NET_NAME_UNRESOLVED"
	NetMTUDiffers        ID = "NET_MTU_DIFFERS"
	NetPodsUnreachable   ID = "NET_PODS_UNREACHABLE"
	NetDNSBroken         ID = "NET_DNS_BROKEN"
	ProxyUnreachable     ID = "PROXY_UNREACHABLE"
	HostKeepalivedTaken  ID = "HOST_KEEPALIVED_TAKEN"
	VirtualIPUnfit       ID = "VIRTUAL_IP_UNFIT"
	VirtualIPTaken       ID = "VIRTUAL_IP_TAKEN"
	VirtualRouterTaken   ID = "VIRTUAL_ROUTER_TAKEN"
)

var networkReasons = []Reason{
	{HostPortTaken, 64,
		"A port that Kubernetes or the pod network listens on is taken by another program, on a host that is no node yet.",
		"stop the program that listens on the port named above"},
	{HostFirewallActive, 68,
		"ufw or firewalld is active on a host that is no node yet. kgpu changes no rules of yours, and the default rules keep nodes and pods from each other.",
		"open the ports of Kubernetes and of the pod network, or turn the firewall off"},
	{HostResolverUnusable, 238,
		"Pods get the name servers of their host, and the cluster's DNS asks them for all names that are not the cluster's. The host's own are at an address that only the host itself can ask, such as 127.0.0.1 of dnsmasq or unbound, or there are none, and no file of a resolver that kgpu knows has others. The cluster's DNS would ask itself, and end (plugin/loop).",
		"write the servers that the host's own resolver asks into a file on the host, a line \"nameserver ADDRESS\" each, and name it in the inventory: `kubernetes: {kubeletConfiguration: {resolvConf: /etc/resolv-pods.conf}}`"},
	{HostPodNetworkLeft, 42,
		"A pod network that kgpu did not make has left its configuration, its links or its addresses on the host. Pods would get addresses of the wrong range, or two hosts the same one.",
		"remove what the message names (files, and links by `ip link delete`); `kgpu up --adopt` removes what weave, flannel and calico left"},
	{HostIPTablesLegacy, 240,
		"The host's iptables is iptables-legacy, and the pod network is weave. Its weave-npc writes to nf_tables whatever the host has, so that no packet would get from pods of one node to pods of another.",
		"`update-alternatives --set iptables /usr/sbin/iptables-nft` and the same for ip6tables, then reboot the host; or `network: flannel`"},
	{NetRangeOverlap, 73,
		"The range of pod or service addresses contains an address of the host, or overlaps with one of its routes: packets for the one would go to the other.",
		"choose another `podCIDR` or `serviceCIDR` under `kubernetes:` in the inventory"},
	{NetPortBlocked, 74,
		"A host that is no node yet tried to connect to another one, at a port of Kubernetes, and nothing answered, or the connection was refused where something must listen.",
		"open the port between the hosts: a firewall or a security group is in between"},
	{NetNameUnresolved, 75,
		"A host could not find the address of a repository, a registry, the proxy or the control plane by its name.",
		"check the host's DNS (`resolvectl status`, /etc/resolv.conf), set `proxy:`, or name a mirror in the inventory"},
	{NetMTUDiffers, 76,
		"The links of the hosts carry packets of different sizes. The pod network takes the size from each host's own link, and the large packets of one are lost on the way to another.",
		"give the hosts' links the same MTU: `ip link set dev NAME mtu SIZE`, and the same in netplan"},
	{NetPodsUnreachable, 216,
		"All nodes are ready, and a pod on one of them does not reach a pod on another, which the message names. The pod network wraps the packets of pods into packets between the nodes' addresses, and something on the way drops those: mostly the firewall of a host, of the cloud (its security group) or of the network between them.",
		"let the hosts' addresses in the cluster (`kubectl get nodes -o wide`) reach each other: flannel needs UDP 8472, calico TCP 179 and IP protocol 4, weave TCP 6783 and UDP 6783 and 6784; then run `kgpu up` again"},
	{NetDNSBroken, 217,
		"Pods reach each other, and one of them does not get an answer from the cluster's DNS: programs in it find no Service by its name.",
		"`kubectl -n kube-system logs -l k8s-app=kube-dns` says what the DNS meets, `kubectl -n kube-system logs -l k8s-app=kube-proxy` whether its address leads to it; then run `kgpu up` again"},
	{ProxyUnreachable, 78,
		"A host could not connect to the proxy that the inventory names, or to the one that its own apt is set to.",
		"check the address under `proxy:`, and that the host may connect to it; of a proxy that the inventory does not name, `apt-config dump Acquire` on the host says where it is"},
	{HostKeepalivedTaken, 247,
		"keepalived on the host has a configuration that is not kgpu's. kgpu would have to replace it, and takes nothing over.",
		"where nobody needs it: remove /etc/keepalived/keepalived.conf on the host; else leave out `virtualIP`, and name what leads to all control planes as `kubernetes.controlPlaneEndpoint`"},
	{VirtualIPUnfit, 245,
		"The virtual address is in no subnet of a control plane, or is the own address of a host. keepalived moves it from one control plane to another, so that all of them must be where it is.",
		"name a free address of the subnet in which all control planes are as `kubernetes.virtualIP`; in different subnets, a load balancer of yours as `kubernetes.controlPlaneEndpoint`"},
	{VirtualIPTaken, 79,
		"A machine answers at the virtual address before any control plane has it: two would fight for it, and the cluster's nodes would reach one or the other.",
		"name another address of the subnet as `kubernetes.virtualIP`, one that nobody has and that no DHCP server gives away"},
	{VirtualRouterTaken, 246,
		"Another router of the Virtual Router Redundancy Protocol on the control planes' network has the number that kgpu makes out of the cluster's name and its virtual address. Such routers must have numbers of their own.",
		"name another address of the subnet as `kubernetes.virtualIP`, which makes another number; where the other router cannot hear the control planes: `preflight: {ignore: [VIRTUAL_ROUTER_TAKEN]}`"},
}
