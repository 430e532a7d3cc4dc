//go:build ignore

// Command flanneld runs flannel's own packages with the Kubernetes subnet manager and the backends that need no cloud: one of
// flannel's cloud backends imports a module that the Go proxy does not serve, so flannel's own main cannot be built from there.
// The constraint above keeps flannel out of the lab's go.mod; prepare builds this file by name in a module of its own.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	_ "github.com/flannel-io/flannel/pkg/backend/wireguard"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	"k8s.io/klog/v2"
)

const (
	netConf       = "/etc/kube-flannel/net-conf.json"
	subnetFile    = "/run/flannel/subnet.env"
	annotations   = "flannel.alpha.coreos.com"
	resyncSeconds = 5
)

func main() {
	masquerade := flag.Bool("ip-masq", false, "masquerade traffic that leaves the pod network")
	flag.Bool("kube-subnet-mgr", true, "leases come from the Kubernetes API (the only manager built in)")
	iface := flag.String("iface", "", "interface or address for traffic between hosts (default: the default route's)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *iface, *masquerade); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "flanneld")
		os.Exit(1)
	}
}

func run(ctx context.Context, iface string, masquerade bool) error {
	manager, err := kube.NewSubnetManager(ctx, "", "", annotations, netConf, false)
	if err != nil {
		return err
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return err
	}
	families, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return err
	}
	external, err := ipmatch.LookupExtIface(iface, "", "", families, ipmatch.PublicIPOpts{})
	if err != nil {
		return err
	}
	kind, err := backend.NewManager(ctx, manager, external).GetBackend(config.BackendType)
	if err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	network, err := kind.RegisterNetwork(ctx, &background, config)
	if err != nil {
		return err
	}

	var rules trafficmngr.TrafficManager = &iptables.IPTablesManager{}
	if config.EnableNFTables {
		rules = &nftables.NFTablesManager{}
	}
	if err := rules.Init(ctx); err != nil {
		return err
	}
	lease := network.Lease()
	if masquerade {
		err := rules.SetupAndEnsureMasqRules(ctx, config.Network, lease.Subnet, config.Network,
			config.IPv6Network, ip.IP6Net{}, ip.IP6Net{}, lease, resyncSeconds, false)
		if err != nil {
			return err
		}
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resyncSeconds)
	if err := manager.HandleSubnetFile(subnetFile, config, masquerade, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
		return err
	}
	klog.InfoS("running", "backend", config.BackendType, "subnet", lease.Subnet.String())
	background.Add(1)
	go func() { network.Run(ctx); background.Done() }()
	return manager.CompleteLease(ctx, lease, &background)
}
