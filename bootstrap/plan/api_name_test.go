package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

const apiOfLab = "api-78e651.lab.kgpu.internal"

// TestAPIName: by which name, if by any, and at which endpoint the nodes of a cluster know its API server.
func TestAPIName(t *testing.T) {
	for _, c := range []struct {
		name, yaml     string
		running        string // endpoint of a cluster that is there; empty: there is none
		again          bool   // that cluster is half made
		want, endpoint string
	}{
		{name: "new", want: apiOfLab, endpoint: apiOfLab + ":6443"},
		{name: "new, of another name", yaml: "cluster: other\n", want: "api-c50f26.other.kgpu.internal", endpoint: "api-c50f26.other.kgpu.internal:6443"},
		{name: "new, with an endpoint of its owner's", yaml: "kubernetes: {controlPlaneEndpoint: k8s.example.com}\n", endpoint: "k8s.example.com:6443"},
		{name: "new, and old", yaml: "kubernetes: {version: 1.29.15, allowEndOfLife: true}\n", endpoint: "10.0.0.10:6443"},
		{name: "it was made without", running: "10.0.0.10:6443", endpoint: "10.0.0.10:6443"},
		{name: "it was made with another name", running: "api-0123ab.was.kgpu.internal:6443", want: "api-0123ab.was.kgpu.internal", endpoint: "api-0123ab.was.kgpu.internal:6443"},
		{name: "it was made with its owner's", running: "k8s.example.com:8443", endpoint: "k8s.example.com:8443"},
		{name: "it was made without, and the inventory has one", yaml: "kubernetes: {controlPlaneEndpoint: k8s.example.com}\n", running: "10.0.0.10:6443", endpoint: "k8s.example.com:6443"},
		{name: "it was made with kgpu's, and the inventory has one", yaml: "kubernetes: {controlPlaneEndpoint: k8s.example.com}\n", running: apiOfLab + ":6443", want: apiOfLab, endpoint: apiOfLab + ":6443"},
		{name: "half made, without", running: "10.0.0.10:6443", again: true, endpoint: "10.0.0.10:6443"},
		{name: "half made, before it has an endpoint", running: "nothing", again: true, want: apiOfLab, endpoint: apiOfLab + ":6443"},
	} {
		t.Run(c.name, func(t *testing.T) {
			yaml := threeHosts + containerd + c.yaml
			if strings.HasPrefix(c.yaml, "cluster") {
				yaml = strings.Replace(yaml, "cluster: lab\n", "", 1)
			}
			inv := decode(t, yaml)
			seen := hostFacts(inv)
			if c.running != "" {
				inv, seen = settled(t, yaml)
				seen["cp1"].ControlPlane.Endpoint = strings.TrimPrefix(c.running, "nothing")
			}
			if c.again {
				seen["cp1"].ControlPlane.Finished, seen["cp1"].Cluster = false, nil
			}
			b, err := newBuilder(inv, seen)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.APIName(); got != c.want || b.Endpoint() != c.endpoint {
				t.Errorf("%q and %s, want %q and %s", got, b.Endpoint(), c.want, c.endpoint)
			}
			err = b.refuseFixed()
			if differs := c.yaml != "" && c.running != ""; (err != nil) != differs || err != nil && !refuses(err, "kubernetes.controlPlaneEndpoint") {
				t.Errorf("it is refused: %v", err)
			}
			if api, err := b.apiEndpoint(); c.want != "" && (err != nil || api.Host != "10.0.0.10") {
				t.Errorf("a host that is no node yet tries %v, %v", api, err)
			}
		})
	}
}

// TestHostNames: a host that does not know the name, or another address by it, is told; nobody else is.
func TestHostNames(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(w1 *facts.Host)
		want string
	}{
		{"all is well", func(*facts.Host) {}, ""},
		{"the line is gone", func(w1 *facts.Host) { w1.Names = nil }, "it does not know " + apiOfLab},
		{"the control plane has another address", func(w1 *facts.Host) { w1.Names[apiOfLab] = []netip.Addr{netip.MustParseAddr("10.0.0.9")} },
			apiOfLab + " leads to 10.0.0.9, not to 10.0.0.10"},
		{"a boot would not bring it back", func(w1 *facts.Host) { w1.Units[apiNameUnit] = facts.Unit{Enabled: "disabled"} }, "kgpu-api-name.service is not enabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := settled(t, threeHosts+containerd)
			c.harm(seen["w1"])
			g := planUp(t, inv, seen)
			var got []string
			for _, s := range g.Steps {
				got = append(got, s.Host+" "+s.ID+" "+s.Reason)
			}
			if want := "w1 os/hosts " + c.want; c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{want}) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestWorkersOfAFormerCluster: one whose control plane is made anew, with a name that it had not or another one, gets its workers
// back; one of a cluster elsewhere is not touched.
func TestWorkersOfAFormerCluster(t *testing.T) {
	for server, want := range map[string]machine.Membership{
		"https://" + apiOfLab + ":6443":                     machine.Rejoin,
		"https://10.0.0.10:6443":                            machine.Rejoin,
		"https://api-0123ab.lab.kgpu.internal:6443":         machine.Rejoin,
		"https://api-fedcba.lab.kgpu.internal:6443":         machine.Foreign, // it leads elsewhere
		"https://10.0.0.99:6443":                            machine.Foreign,
		"https://api-0123ab.lab.kgpu.internal.example:6443": machine.Foreign,
	} {
		inv, seen := settled(t, threeHosts+containerd)
		seen["cp1"].ControlPlane, seen["cp1"].Cluster, seen["cp1"].Kubelet, seen["cp1"].Recorded = nil, nil, nil, nil
		w1 := seen["w1"]
		w1.Kubelet.Server = server
		w1.Names["api-0123ab.lab.kgpu.internal"] = []netip.Addr{netip.MustParseAddr("10.0.0.10")}
		w1.Names["api-0123ab.lab.kgpu.internal.example"] = w1.Names["api-0123ab.lab.kgpu.internal"]
		w1.Names["api-fedcba.lab.kgpu.internal"] = []netip.Addr{netip.MustParseAddr("10.0.0.99")}
		if got := verdicts(inv, seen, false)["w1"]; got.Membership != want {
			t.Errorf("%s: %+v, want %s", server, got, want)
		}
	}
}
