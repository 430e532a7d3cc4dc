package inventory

import (
	_ "embed" // the schema
	"net/netip"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// file is an inventory while it is decoded.
type file struct {
	Inventory
	ssh         SSH // defaults for the hosts
	hostNodes   []*yaml.Node
	secured     bool  // it has the section security
	backsUp     bool  // it has the section backup
	backsUpWhen bool  // and says there when, or something that cannot be read
	entries     []int // of each host: which entry of the file's list it comes from
	broken      bool  // the hosts could not all be decoded: checks over all of them would only add noise
	astray      bool  // what leads to the control planes could not be decoded: nor is it missing
}

func newFile(path string) *file {
	version, err := catalog.Resolve(catalog.Default)
	if err != nil {
		panic(err)
	}
	return &file{
		Inventory: Inventory{
			Path:    path,
			Cluster: "kgpu",
			Kubernetes: Kubernetes{
				Version:     version,
				PodCIDR:     netip.MustParsePrefix("10.244.0.0/16"),
				ServiceCIDR: netip.MustParsePrefix("10.96.0.0/12"),
			},
			Runtime:  Docker,
			Network:  Weave,
			Swap:     SwapRefuse,
			GPU:      GPU{CUDNN: true, MIGStrategy: MIGNone},
			Security: Security{PodSecurity: PodsBaseline, AuditLog: true},
			Backup:   Backup{Keep: keptBackups, To: BackupFolder},
			Timeouts: DefaultTimeouts(),
		},
		ssh: SSH{Agent: true, HostKeyPolicy: Strict},
	}
}

func fileKeys() keys[file] {
	return keys[file]{
		"cluster":      value(func(f *file) *string { return &f.Cluster }, rfc1123Label),
		"kubernetes":   section(func(f *file) *Kubernetes { return &f.Kubernetes }, kubernetesKeys()),
		"runtime":      value(func(f *file) *Runtime { return &f.Runtime }, oneOf(Docker, Containerd)),
		"network":      value(func(f *file) *Network { return &f.Network }, oneOf(Weave, Flannel, Calico, None)),
		"swap":         value(func(f *file) *Swap { return &f.Swap }, oneOf(SwapRefuse, SwapDisable)),
		"gpu":          section(func(f *file) *GPU { return &f.GPU }, gpuKeys()),
		"notebook":     section(func(f *file) *Notebook { return &f.Notebook }, notebookKeys()),
		"security":     security,
		"backup":       backup,
		"proxy":        section(func(f *file) *Proxy { return &f.Proxy }, proxyKeys()),
		"repositories": section(func(f *file) *Repositories { return &f.Repositories }, repositoriesKeys()),
		"images":       section(func(f *file) *Inventory { return &f.Inventory }, imagesKeys()),
		"preflight":    section(func(f *file) *Inventory { return &f.Inventory }, preflightKeys()),
		"timeouts":     section(func(f *file) *Timeouts { return &f.Timeouts }, timeoutsKeys()),
		"ssh":          func(d *decoder, f *file, n *yaml.Node, path string) { d.ssh(&f.ssh, n, path) },
		"hosts": func(d *decoder, f *file, n *yaml.Node, path string) {
			// The hosts want the ssh defaults, which may come later in the file.
			d.items(n, path, func(n *yaml.Node, _ string) { f.hostNodes = append(f.hostNodes, n) })
		},
	}
}

// section is a key with a mapping of its own.
func section[T, V any](field func(*T) *V, ks keys[V]) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) { mapping(d, n, path, ks, field(into)) }
}

func kubernetesKeys() keys[Kubernetes] {
	return keys[Kubernetes]{
		"version":                kubernetesVersion,
		"allowEndOfLife":         boolean(func(k *Kubernetes) *bool { return &k.AllowEndOfLife }),
		"podCIDR":                value(func(k *Kubernetes) *netip.Prefix { return &k.PodCIDR }, cidr),
		"serviceCIDR":            value(func(k *Kubernetes) *netip.Prefix { return &k.ServiceCIDR }, cidr),
		"controlPlaneEndpoint":   value(func(k *Kubernetes) *string { return &k.ControlPlaneEndpoint }, endpoint),
		"virtualIP":              value(func(k *Kubernetes) *netip.Addr { return &k.VirtualIP }, ipAddress),
		"featureGates":           gates,
		"kubeletConfiguration":   passthrough(func(k *Kubernetes) *map[string]any { return &k.KubeletConfiguration }),
		"clusterConfiguration":   passthrough(func(k *Kubernetes) *map[string]any { return &k.ClusterConfiguration }),
		"kubeProxyConfiguration": passthrough(func(k *Kubernetes) *map[string]any { return &k.KubeProxyConfiguration }),
		"ignorePreflightErrors":  values(func(k *Kubernetes) *[]string { return &k.IgnorePreflightErrors }, word),
	}
}

func kubernetesVersion(d *decoder, k *Kubernetes, n *yaml.Node, path string) {
	rawValue(func(k *Kubernetes) *Version { return &k.Version }, func(s string) (Version, error) {
		k.Pin = PinnedExact
		if catalog.IsMinor(s) {
			k.Pin = PinnedMinor
		}
		return catalog.Resolve(s)
	})(d, k, n, path)
}

func gates(d *decoder, k *Kubernetes, n *yaml.Node, path string) {
	k.FeatureGates = map[string]bool{}
	for key, value := range d.pairs(n, path) {
		at := join(path, key.Value)
		d.nodes[at] = key
		if on, ok := d.bool(value, at); ok {
			k.FeatureGates[key.Value] = on
		}
	}
}

func gpuKeys() keys[GPU] {
	return keys[GPU]{
		"driver":      section(func(g *GPU) *Driver { return &g.Driver }, driverKeys()),
		"migStrategy": value(func(g *GPU) *MIGStrategy { return &g.MIGStrategy }, oneOf(MIGNone, MIGSingle, MIGMixed)),
		"timeSlicing": section(func(g *GPU) *Sharing { return &g.TimeSlicing }, sharingKeys(maxReplicas)),
		"mps":         section(func(g *GPU) *Sharing { return &g.MPS }, sharingKeys(maxMPSShares)),
		"cuda":        rawValue(func(g *GPU) *string { return &g.CUDA }, cudaVersion),
		"cudnn":       boolean(func(g *GPU) *bool { return &g.CUDNN }),
	}
}

func driverKeys() keys[Driver] {
	return keys[Driver]{
		"source":  value(func(d *Driver) *catalog.DriverSource { return &d.Source }, oneOf(catalog.FromUbuntu, catalog.FromCUDA, catalog.FromDebian, catalog.FromPPA, catalog.NoDriver)),
		"branch":  rawValue(func(d *Driver) *int { return &d.Branch }, driverBranch),
		"flavour": value(func(d *Driver) *catalog.Flavour { return &d.Flavour }, oneOf(catalog.Open, catalog.Proprietary)),
	}
}

func proxyKeys() keys[Proxy] {
	return keys[Proxy]{
		"http":    value(func(p *Proxy) *string { return &p.HTTP }, httpURL),
		"https":   value(func(p *Proxy) *string { return &p.HTTPS }, httpURL),
		"noProxy": values(func(p *Proxy) *[]string { return &p.NoProxy }, word),
	}
}

func repositoriesKeys() keys[Repositories] {
	return keys[Repositories]{
		"kubernetes":             section(func(r *Repositories) *Repository { return &r.Kubernetes }, repositoryKeys()),
		"docker":                 section(func(r *Repositories) *Repository { return &r.Docker }, repositoryKeys()),
		"cuda":                   section(func(r *Repositories) *Repository { return &r.CUDA }, repositoryKeys()),
		"nvidiaContainerToolkit": section(func(r *Repositories) *Repository { return &r.Toolkit }, repositoryKeys()),
		"graphicsDrivers":        section(func(r *Repositories) *Repository { return &r.GraphicsDrivers }, repositoryKeys()),
		"criDockerd":             section(func(r *Repositories) *Artifact { return &r.CRIDockerd }, artifactKeys()),
		"calico":                 section(func(r *Repositories) *Artifact { return &r.Calico }, artifactKeys()),
	}
}

func repositoryKeys() keys[Repository] {
	return keys[Repository]{
		"url":         value(func(r *Repository) *string { return &r.URL }, httpURL),
		"keyURL":      value(func(r *Repository) *string { return &r.KeyURL }, httpURL),
		"fingerprint": rawValue(func(r *Repository) *string { return &r.Fingerprint }, fingerprint),
	}
}

func artifactKeys() keys[Artifact] {
	return keys[Artifact]{
		"url":    value(func(a *Artifact) *string { return &a.URL }, httpURL),
		"sha256": rawValue(func(a *Artifact) *string { return &a.SHA256 }, sha256Sum),
	}
}

func imagesKeys() keys[Inventory] {
	return keys[Inventory]{
		"registry": value(func(i *Inventory) *string { return &i.Registry }, registry),
	}
}

func preflightKeys() keys[Inventory] {
	return keys[Inventory]{
		"ignore": values(func(i *Inventory) *[]string { return &i.Ignore }, reasonID),
	}
}

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 2020-12) of the inventory, for editors. Decode checks more than it can say.
func Schema() []byte { return append([]byte(nil), schema...) }
