package plan

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
)

// RequiredEndpoints lists what the hosts have to reach before they are nodes, by host ID. Hosts that are nodes need nothing, but for
// the ports of those that come to them.
func RequiredEndpoints(inv *inventory.Inventory, seen map[string]*facts.Host) (map[string][]machine.RequiredEndpoint, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	needs := map[string][]machine.RequiredEndpoint{}
	for _, h := range b.hosts {
		if h.InCluster() {
			continue
		}
		outside, err := b.outside(h)
		if err != nil {
			return nil, err
		}
		needs[h.id] = append(needs[h.id], outside...)
		b.etcdEndpoints(h, needs)
		if h != b.first && h.addr.IsValid() && b.APIAddress().IsValid() {
			api, err := b.apiEndpoint()
			if err != nil {
				return nil, err
			}
			needs[h.id] = append(needs[h.id], machine.RequiredEndpoint{Endpoint: api, Purpose: machine.ToAPI, Listens: b.APIAnswers()})
			for _, plane := range b.planes {
				if plane != h {
					needs[plane.id] = append(needs[plane.id], machine.RequiredEndpoint{Endpoint: facts.Endpoint{Host: h.addr.String(), Port: kubeletPort}, Purpose: machine.ToNode})
				}
			}
		}
	}
	return needs, nil
}

const kubeletPort = 10250

// etcdPorts are those that etcd takes clients and other members at.
var etcdPorts = []uint16{2379, 2380}

// etcdEndpoints adds the ways between a control plane that joins and each other: it asks them, and those that have no such way of
// their own ask it.
func (b *builder) etcdEndpoints(h *host, needs map[string][]machine.RequiredEndpoint) {
	if !h.IsControlPlane() {
		return
	}
	way := func(from, to *host) {
		for _, port := range etcdPorts {
			if to.addr.IsValid() {
				needs[from.id] = append(needs[from.id], machine.RequiredEndpoint{Endpoint: facts.Endpoint{Host: to.addr.String(), Port: port}, Purpose: machine.ToEtcd})
			}
		}
	}
	for _, other := range b.planes {
		if other == h {
			continue
		}
		way(h, other)
		if other.InCluster() {
			way(other, h)
		}
	}
}

// outside lists the proxy, or what is reached without one.
func (b *builder) outside(h *host) ([]machine.RequiredEndpoint, error) {
	if p := b.Inventory.Proxy; p.HTTP != "" || p.HTTPS != "" {
		return endpoints(machine.ByProxy, p.HTTP, p.HTTPS)
	}
	urls := []string{effective(catalog.KubernetesSource, b.Inventory.Repositories.Kubernetes, "", b.Inventory.Kubernetes.Version.MinorString()).URL}
	if !b.hasRuntimePackage(h) {
		urls = append(urls, effective(catalog.DockerSource, b.Inventory.Repositories.Docker, "", h.Facts.OS.ID).URL)
	}
	if len(machine.Cards(b.Inventory, h.Facts)) > 0 {
		urls = append(urls, b.cardURLs(h)...)
	}
	if url, _ := b.criDockerdDownload(h); b.criDockerd() && h.Facts.CRIDockerd == "" {
		urls = append(urls, url)
	}
	if url, _ := b.calicoDownload(); b.Inventory.Network == inventory.Calico && h == b.admin {
		urls = append(urls, url)
	}
	packages, err := endpoints(machine.Packages, urls...)
	if err != nil {
		return nil, err
	}
	registries, err := b.registries(h)
	if err != nil {
		return nil, err
	}
	images, err := endpoints(machine.Images, registries...)
	return append(packages, images...), err
}

// cardURLs lists what a host with cards loads from.
func (b *builder) cardURLs(h *host) []string {
	var urls []string
	if b.mechanism() == catalog.DevicePlugins {
		urls = append(urls, effective(catalog.ToolkitSource, b.Inventory.Repositories.Toolkit, "", h.Facts.Arch).URL)
	}
	driver, err := machine.ChooseDriver(b.Inventory, h.Facts)
	if err != nil {
		return urls
	}
	cuda, err := machine.ChooseCUDA(b.Inventory, h.Facts, driver)
	missing, _, _ := cuda.Missing(h.Facts)
	if err == nil && len(missing) > 0 || driver.Source == catalog.FromCUDA && !driver.Keep {
		urls = append(urls, b.cudaSource(h).URL)
	}
	return urls
}

// registries lists the URLs of those that a host pulls from: for every node those of the pause image and the pod network, for one whose
// cards get a driver also those of the device plugin and the notebook, where it may run there.
func (b *builder) registries(h *host) ([]string, error) {
	images := []string{b.image(b.Minor.ImageRepository() + "/pause")}
	if r, ok := b.Inventory.Kubernetes.ClusterConfiguration["imageRepository"].(string); ok {
		images[0] = r + "/pause"
	}
	var addons []string
	if b.Inventory.Network != inventory.None {
		addons = append(addons, "addon/"+string(b.Inventory.Network))
	}
	if _, err := machine.ChooseDriver(b.Inventory, h.Facts); err == nil && len(machine.Cards(b.Inventory, h.Facts)) > 0 {
		if b.mechanism() == catalog.DevicePlugins {
			addons = append(addons, "addon/device-plugin")
		}
		if _, there := b.Cluster.Workloads[notebookWorkload]; !there && b.Inventory.Notebook.Framework != catalog.NoFramework && b.chooseNotebook() && slices.Contains(b.notebookChoice.Nodes, h.node) {
			images = append(images, b.notebookImage())
		}
	}
	for _, id := range addons {
		objects, err := b.objects(addonOf(id).manifest)
		if err != nil {
			return nil, err
		}
		manifest.Containers(objects, func(c object) { images = append(images, fmt.Sprint(c["image"])) })
	}
	var urls []string
	for _, image := range images {
		host, _, whole := strings.Cut(image, "/")
		if host == "docker.io" || !whole || !strings.ContainsAny(host, ".:") && host != "localhost" {
			host = "registry-1.docker.io" // where the images of docker.io really are, and those whose names have no registry
		}
		urls = append(urls, "https://"+host)
	}
	return urls, nil
}

// endpoints are those of the URLs, each once.
func endpoints(purpose machine.Purpose, urls ...string) ([]machine.RequiredEndpoint, error) {
	var needs []machine.RequiredEndpoint
	for _, text := range urls {
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		port := map[string]uint16{"http": 80, "https": 443}[u.Scheme]
		if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
			port = uint16(p)
		}
		need := machine.RequiredEndpoint{Endpoint: facts.Endpoint{Host: u.Hostname(), Port: port}, Purpose: purpose, Listens: true}
		if purpose == machine.Packages {
			need.Scheme = u.Scheme
		}
		if port != 0 && !slices.Contains(needs, need) { // a mirror may be a folder: file:///mnt/mirror
			needs = append(needs, need)
		}
	}
	return needs, nil
}

// apiEndpoint is where the nodes reach the API server. A host that is none yet does not know kgpu's own name of it, and the virtual
// address is not there before the API server is, nor on a cluster that is about to get it.
func (b *builder) apiEndpoint() (facts.Endpoint, error) {
	if b.APIName() != "" {
		at := b.APIAddress()
		if !b.APIAnswers() || !b.LeadsToAPI(b.first.Facts, b.APIName()) {
			at = b.first.addr
		}
		return facts.Endpoint{Host: at.String(), Port: catalog.APIPort}, nil
	}
	host, port, err := net.SplitHostPort(b.Endpoint())
	if err != nil {
		return facts.Endpoint{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return facts.Endpoint{Host: host, Port: uint16(n)}, err
}
