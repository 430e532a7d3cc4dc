package plan

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// flagsOf is what facts.sh finds in the manifests that kubeadm makes of its configuration.
func flagsOf(c *facts.ControlPlane, kubeadm string) {
	value := func(key string) string {
		m := regexp.MustCompile(`(?m)^ *` + key + `: (.*)$`).FindStringSubmatch(kubeadm)
		if m == nil {
			return ""
		}
		return m[1]
	}
	flag := func(name string) string {
		m := regexp.MustCompile(`name: ` + name + `\n *value: (.*)\n`).FindStringSubmatch(kubeadm)
		if m == nil {
			return ""
		}
		return m[1]
	}
	c.Name, c.PodCIDR, c.ServiceCIDR = value("clusterName"), value("podSubnet"), value("serviceSubnet")
	c.Defences = facts.Defences{
		Plugins: flag("enable-admission-plugins"), Admission: flag("admission-control-config-file"),
		AuditLog: flag("audit-log-path"), Encryption: flag("encryption-provider-config"),
	}
}

// refuses reports whether a plan is refused because of this key, and nothing else.
func refuses(err error, key string) bool {
	all := reason.All(err)
	return len(all) == 1 && all[0].ID == reason.ClusterSettingFixed && strings.Contains(all[0].Detail, ": "+key+": ")
}

// otherValues are values that a key may get while its cluster runs: other ones than the file of that has.
var otherValues = map[string][]any{
	"cluster": {"other"}, "network": {"weave", "calico", "none"}, "runtime": {"docker", "containerd"}, "swap": {"disable"},
	"kubernetes.version": {"1.37"}, "kubernetes.allowEndOfLife": {true},
	"kubernetes.podCIDR": {"10.60.0.0/16"}, "kubernetes.serviceCIDR": {"10.70.0.0/16"}, "kubernetes.controlPlaneEndpoint": {"other.example.com:6443"}, "kubernetes.virtualIP": {"10.0.0.100"},
	"kubernetes.featureGates":           {map[string]any{"NodeLogQuery": true}},
	"kubernetes.kubeletConfiguration":   {map[string]any{"maxPods": 200}},
	"kubernetes.clusterConfiguration":   {map[string]any{"networking": map[string]any{"dnsDomain": "cluster.example"}}},
	"kubernetes.kubeProxyConfiguration": {map[string]any{"mode": "nftables"}},
	"kubernetes.ignorePreflightErrors":  {[]any{"NumCPU"}},
	"gpu.driver.source":                 {"cuda"}, "gpu.driver.branch": {595}, "gpu.driver.flavour": {"proprietary"},
	"gpu.cuda": {"none", "12.9"}, "gpu.cudnn": {true}, "gpu.migStrategy": {"mixed"}, "gpu.timeSlicing.replicas": {4}, "gpu.mps.replicas": {4},
	"notebook.framework": {"pytorch", "none"}, "notebook.version": {"2.18.0"}, "notebook.image": {"registry.example.com/notebook:1"},
	"notebook.nodePort": {30099}, "notebook.storage": {"10Gi"}, "notebook.idleTimeout": {"30m"},
	"security.podSecurity": {"restricted", "privileged"}, "security.auditLog": {false}, "security.encryptSecrets": {true},
	"backup.schedule": {"Mon,Thu 02:30"}, "backup.keep": {3}, "backup.to": {"/mnt/backups"},
	"proxy.http": {"http://proxy.example.com:3128"}, "proxy.https": {"http://proxy.example.com:3128"}, "proxy.noProxy": {[]any{".example.com"}},
	"images.registry":  {"registry.example.com/mirror"},
	"preflight.ignore": {[]any{"HOST_REBOOT_PENDING"}},
	"timeouts.link":    {"11m"}, "timeouts.reboot": {"11m"}, "timeouts.lock": {"11m"}, "timeouts.transient": {"11m"},
	"ssh.user": {"admin"}, "ssh.port": {2222}, "ssh.key": {"~/.ssh/key"}, "ssh.passphrase": {"${SECRET}"}, "ssh.agent": {false}, "ssh.knownHosts": {"~/.ssh/known"},
	"ssh.hostKeyPolicy": {"accept-new"}, "ssh.hostKey": {someHostKey}, "ssh.sudoPassword": {"${SECRET}"},
	"ssh.bastion.address": {"gate.example.com"}, "ssh.bastion.user": {"gate"}, "ssh.bastion.port": {2222}, "ssh.bastion.key": {"~/.ssh/key"},
	"ssh.bastion.passphrase": {"${SECRET}"}, "ssh.bastion.agent": {false}, "ssh.bastion.knownHosts": {"~/.ssh/known"},
	"ssh.bastion.hostKeyPolicy": {"accept-new"}, "ssh.bastion.hostKey": {someHostKey}, "ssh.bastion.bastion": {map[string]any{"address": "far.example.com"}},
	"hosts[].address": {"w1.example.com"}, "hosts[].name": {"w9"}, "hosts[].privateAddress": {"10.0.0.99"}, "hosts[].role": {"control-plane"},
	"hosts[].labels": {map[string]any{"disk": "slow"}}, "hosts[].taints": {[]any{"example.com/busy:NoSchedule"}}, "hosts[].ssh": {map[string]any{"user": "admin"}},
	"repositories.criDockerd.url": {"https://mirror.example.com/file"}, "repositories.criDockerd.sha256": {strings.Repeat("0123456789abcdef", 4)},
	"repositories.calico.url": {"https://mirror.example.com/file"}, "repositories.calico.sha256": {strings.Repeat("0123456789abcdef", 4)},
}

func init() {
	for _, name := range []string{"kubernetes", "docker", "cuda", "nvidiaContainerToolkit", "graphicsDrivers"} {
		otherValues["repositories."+name+".url"] = []any{"https://mirror.example.com/" + name}
		otherValues["repositories."+name+".keyURL"] = []any{"https://mirror.example.com/key"}
		otherValues["repositories."+name+".fingerprint"] = []any{strings.Repeat("0123456789ABCDEF", 3)[:40]}
	}
}

const someHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7kEMAjVUGCuxU6xK0vjXbP3UPHeKXbU5NoeZvYhSSD"

// neededBeside are keys that a key needs at its side, in the file of the cluster that runs too.
var neededBeside = map[string]map[string]any{
	"proxy.noProxy":       {"proxy.http": "http://proxy.example.com:3128"},
	"gpu.cudnn":           {"gpu.cudnn": false},
	"backup":              {"backup.schedule": "daily"},
	"ssh.bastion":         {"ssh.bastion.address": "bastion.example.com"},
	"ssh.passphrase":      {"ssh.key": "/root/id"},
	"ssh.bastion.pass":    {"ssh.bastion.key": "/root/id"},
	"repositories.calico": {"network": "calico", "repositories.calico.url": "https://mirror.example.com/calico.yaml", "repositories.calico.sha256": strings.Repeat("fedcba9876543210", 4)},
	"repositories.cri":    {"repositories.criDockerd.url": "https://mirror.example.com/cri", "repositories.criDockerd.sha256": strings.Repeat("fedcba9876543210", 4)},
}

const settledFile = `
cluster: lab
network: flannel
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11, name: w1, role: worker}
  - {address: 10.0.0.12, name: w2}
`

// TestChanges changes every key of the inventory alone, on a cluster that is up: the plan does what the table of changes says.
func TestChanges(t *testing.T) {
	for _, c := range Changes {
		for _, key := range c.Keys {
			if !slices.Contains(inventory.Keys(), key) {
				t.Errorf("the table has %s, which is no key", key)
			}
		}
		for _, pattern := range c.Steps {
			if !slices.ContainsFunc(Kinds.IDs(), func(id string) bool { ok, _ := path.Match(pattern, id); return ok }) {
				t.Errorf("%v: there is no step %s", c.Keys, pattern)
			}
		}
	}
	for _, key := range inventory.Keys() {
		t.Run(key, func(t *testing.T) {
			c, ok := ChangeOf(key)
			if !ok || len(otherValues[key]) == 0 {
				t.Fatalf("%s has no row in the table of changes, or no other value here: which of the answers is it?", key)
			}
			planned := map[string]bool{}
			for _, runtime := range []string{"containerd", "docker"} {
				with := map[string]any{"runtime": runtime}
				for prefix, more := range neededBeside {
					if strings.HasPrefix(key, prefix) {
						for k, v := range more {
							with[k] = v
						}
					}
				}
				was, _ := edited(t, settledFile, with)
				for _, value := range otherValues[key] {
					if value == runtime {
						continue
					}
					_, seen := settled(t, was, func(f map[string]*facts.Host) {
						f["w1"].NVIDIA.Cards, f["w2"].Swap = cards("20b0", "20b0"), []facts.Swap{{Name: "/swap.img", Active: true, Source: "fstab"}}
					})
					text, place := edited(t, was, map[string]any{key: value})
					for id := range c.judge(t, key, place, text, seen) {
						planned[id] = true
					}
					if key == "hosts[].address" { // a control plane's, too
						text = strings.Replace(text, "address: 10.0.0.10\n", "address: cp1.example.com\n", 1)
						for id := range c.judge(t, key, place, text, seen) {
							planned[id] = true
						}
					}
				}
			}
			if len(c.Steps) > 0 && len(planned) == 0 {
				t.Errorf("it takes no step, the table names %q", c.Steps)
			}
			if drains := planned["node/drain"]; drains != (c.Answer == NodeByNode) {
				t.Errorf("a node is drained: %t, the table says: %s", drains, c.Answer)
			}
		})
	}
}

// judge holds what becomes of a change against the answer, and returns the IDs of the steps.
func (c Change) judge(t *testing.T, key, place, text string, seen map[string]*facts.Host) map[string]bool {
	t.Helper()
	inv, invalid := inventory.Decode("inventory.yaml", []byte(text), inventory.Options{Env: func(string) (string, bool) { return "secret", true }})
	if invalid != nil {
		if c.Answer != NotHere || !strings.Contains(invalid.Error(), place+": hosts[1].role: ") {
			t.Error(invalid)
		}
		return nil
	}
	g, err := Up(inv, byID(inv, seen))
	if c.Answer == NotHere {
		all := reason.All(err)
		if len(all) == 0 {
			t.Fatalf("it is not refused: %v", refs(g))
		}
		for _, e := range all {
			fixed := e.ID == reason.ClusterSettingFixed && strings.HasPrefix(index.ReplaceAllString(e.Detail, "[]"), place+": "+key+": ") && e.Advice == c.Says
			if !fixed && (e.ID != reason.KubernetesVersionChange || !strings.HasPrefix(e.Detail, place+": ")) {
				t.Errorf("refused, not at %s: %v", place, err)
			}
		}
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, s := range g.Steps {
		id := s.ID
		if parts := strings.SplitN(id, "/", 3); len(parts) == 3 {
			id = parts[0] + "/" + parts[1]
		}
		ids[id] = true
		if !slices.ContainsFunc(c.Steps, func(pattern string) bool { ok, _ := path.Match(pattern, id); return ok }) {
			t.Errorf("%s, because %s: the table does not name it", s.Ref, s.Reason)
		}
	}
	return ids
}

// byID are the facts by the IDs that the hosts have in the inventory now.
func byID(inv *inventory.Inventory, seen map[string]*facts.Host) map[string]*facts.Host {
	out := map[string]*facts.Host{}
	for i, name := range []string{"cp1", "w1", "w2"} {
		out[inv.Hosts[i].ID()] = seen[name]
	}
	return out
}

// edited is the file with other values, of its second host where a key is a host's, and the place of the last value.
func edited(t *testing.T, text string, values map[string]any) (out, place string) {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, key := range sortedKeys(values) {
		into := file
		name, ofHost := strings.CutPrefix(key, "hosts[].")
		if ofHost {
			into = file["hosts"].([]any)[1].(map[string]any)
		}
		parts = strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			if _, ok := into[part]; !ok {
				into[part] = map[string]any{}
			}
			into = into[part].(map[string]any)
		}
		into[parts[len(parts)-1]] = values[key]
		if ofHost {
			parts = slices.Concat([]string{"hosts", "1"}, parts)
		}
	}
	b, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	n := doc.Content[0]
	for _, part := range parts {
		if n.Kind == yaml.SequenceNode {
			n = n.Content[1]
			continue
		}
		i := slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return c.Value == part })
		n = n.Content[i+1]
	}
	return string(b), fmt.Sprintf("inventory.yaml:%d:%d", n.Line, n.Column)
}

// What a cluster was made with counts where the file says nothing of it, whatever the defaults are, and without an answer of its API
// server, too.
func TestWhatRunsCounts(t *testing.T) {
	made := map[string]any{
		"runtime": "containerd", "network": "flannel", "kubernetes.podCIDR": "10.60.0.0/16", "kubernetes.serviceCIDR": "10.70.0.0/16", "kubernetes.controlPlaneEndpoint": "k8s.example.com:6443",
		"kubernetes.kubeletConfiguration": map[string]any{"maxPods": 200}, "security.podSecurity": "restricted", "security.auditLog": false,
	}
	was, _ := edited(t, threeHosts, made)
	_, seen := settled(t, was, driven())
	inv := decode(t, threeHosts)
	nothingLeft(t, inv, seen)
	if s := machine.SetOf(inv, seen).Inventory; s.Runtime != inventory.Containerd || s.Network != inventory.Flannel || s.Kubernetes.PodCIDR.String() != "10.60.0.0/16" || s.Kubernetes.ServiceCIDR.String() != "10.70.0.0/16" {
		t.Errorf("it is judged as %+v", s)
	}
	seen["cp1"].Cluster = nil
	seen["cp1"].PodNetworkFiles = []string{"/etc/cni/net.d/10-flannel.conflist"}
	if s := machine.SetOf(inv, seen).Inventory; s.Network != inventory.Flannel {
		t.Errorf("without an answer: %s", s.Network)
	}
}

// A network that the owner brought stays, and none of kgpu's comes beside it.
func TestOwnNetworkStays(t *testing.T) {
	_, seen := settled(t, threeHosts+"runtime: containerd\nnetwork: none\n", driven())
	seen["cp1"].PodNetworkFiles = []string{"/etc/cni/net.d/05-cilium.conflist"}
	for more, key := range map[string]string{"": "", "network: none\n": "", "network: flannel\n": "network"} {
		_, err := Up(decode(t, threeHosts+"runtime: containerd\n"+more), seen)
		if key == "" && err != nil || key != "" && !refuses(err, key) {
			t.Errorf("%q: %v", more, err)
		}
	}
}

// What is refused of a node is what the file says of it, with what it has.
func TestNodesOfAnotherKind(t *testing.T) {
	_, seen := settled(t, settledFile+"runtime: containerd\n", driven())
	seen["cp1"].Cluster.Nodes[1].Runtime = "docker://29.4.3"
	_, err := Up(decode(t, settledFile+"runtime: containerd\n"), seen)
	if all := reason.All(err); !refuses(err, "runtime") || all[0].Host != "w1" {
		t.Errorf("a node with another runtime: %v", err)
	}
}

// Hosts that change their roles are refused, at what the file says of them, with the commands that make something else of them.
func TestRolesChanged(t *testing.T) {
	swapped := strings.NewReplacer("role: control-plane", "role: worker", "role: worker", "role: control-plane").Replace(settledFile)
	for _, c := range []struct{ before, after, host, place, advice string }{
		{settledFile + "runtime: containerd\n", swapped, "cp1", "inventory.yaml:5:43: hosts[0].role: ", "takes `kgpu reset` and `kgpu up`"},
		{settledFile + "runtime: containerd\n", swapped, "w1", "inventory.yaml:6:42: hosts[1].role: ", "`kgpu remove-worker w1`, then `kgpu add-control-plane 10.0.0.11`"},
		{fourHosts, strings.NewReplacer("cp1, role: control-plane", "cp1", "cp3, role: control-plane", "cp3").Replace(fourHosts), "cp3", "inventory.yaml:9:15: hosts[3].role: ",
			"`kgpu remove-control-plane cp3`, then `kgpu add-worker 10.0.0.13`"},
	} {
		_, seen := settled(t, c.before, driven())
		v := verdicts(decode(t, c.after), seen, false)[c.host]
		if v.Refused != reason.ClusterSettingFixed || !strings.HasPrefix(v.Detail, c.place) || !strings.Contains(v.Advice, c.advice) {
			t.Errorf("%s: %+v", c.host, v)
		}
	}
	_, seen := settled(t, settledFile+"runtime: containerd\n", driven())
	seen["w1"].Etcd = &facts.EtcdData{}
	if v := verdicts(decode(t, swapped), seen, false)["w1"]; v.Refused != reason.ClusterSettingFixed || v.Advice != "" {
		t.Errorf("a control plane that has lost its kubeconfig: %+v", v)
	}
}

// Who changed by hand what only kubeadm init reads, and removed the file that remembers it, writes it into the inventory.
func TestChangedByHand(t *testing.T) {
	_, seen := settled(t, settledFile+"runtime: containerd\n", driven())
	inv := decode(t, settledFile+"runtime: containerd\nkubernetes: {kubeletConfiguration: {maxPods: 200}}\n")
	if _, err := Up(inv, seen); !refuses(err, "kubernetes.kubeletConfiguration") {
		t.Errorf("not refused: %v", err)
	}
	delete(seen["cp1"].Files, madeWithFile("kubernetes.kubeletConfiguration"))
	nothingLeft(t, inv, seen)
}
