package facts

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestNodeQuantities: Kubernetes writes 2000 as 2k, and an unreadable amount does not hide the others.
func TestNodeQuantities(t *testing.T) {
	c := &Cluster{}
	node := func(name, capacity, allocatable string) []string {
		return []string{"node", name, "uid", "True", "", "v1.36.3", "", "", "", "", "", capacity, allocatable, ""}
	}
	for _, fields := range [][]string{
		node("w1", "nvidia.com/gpu=4k", "nvidia.com/gpu=2k nvidia.com/mig-1g.5gb=7 alpha.kubernetes.io/nvidia-gpu=2"),
		node("liar", "nvidia.com/gpu=-1Zi", "nvidia.com/mig-1g.5gb=many alpha.kubernetes.io/nvidia-gpu=x"),
		node("none", "", ""),
	} {
		must(t, c.object(fields))
	}
	w1 := c.Nodes[0]
	if want := map[string]int{"nvidia.com/gpu": 2000, "alpha.kubernetes.io/nvidia-gpu": 2, "nvidia.com/mig-1g.5gb": 7}; !maps.Equal(w1.Allocatable, want) || w1.Capacity["nvidia.com/gpu"] != 4000 {
		t.Errorf("%+v", w1)
	}
	for _, n := range c.Nodes[1:] {
		if n.Capacity != nil || n.Allocatable != nil {
			t.Errorf("%+v", n)
		}
	}
}

func TestRecord(t *testing.T) {
	old := recorded(t, "control-plane.txt")
	if r := old.Recorded; r != nil {
		t.Errorf("a ledger that says nothing: %+v", r)
	}
	ca := certificateOf(t)
	const hash = "ce6af9d99f54264d174406dba2e0af2990247adb3c8f971528ccf3bade51785b"
	for _, c := range []struct {
		name  string
		lines []string
		want  *Record
	}{
		{"nothing", nil, nil},
		{"begun", []string{"kubeadm=join"}, &Record{Join: true}},
		{"an old ledger", []string{"kubeadm=init", "kubeadm=init-done"}, &Record{Init: true, Done: true}},
		{"joined", []string{"kubeadm=join", "kubeadm=join-done b88690b5-738e-4577-b15c-fdb6a32e4a25", "recorded-ca=" + ca},
			&Record{Join: true, Done: true, UID: "b88690b5-738e-4577-b15c-fdb6a32e4a25", CAHash: hash}},
		{"adopted", []string{"adopted=worker b88690b5", "recorded-ca=" + ca}, &Record{Adopted: true, UID: "b88690b5", CAHash: hash}},
	} {
		if got := parse(t, c.lines...).Recorded; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// certificateOf is the CA of the recorded control plane, as facts.sh prints it.
func certificateOf(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/control-plane.txt")
	must(t, err)
	a, err := split(data, "kgpu-facts=1")
	must(t, err)
	return a.first("cluster-ca")
}

func TestTracesOfClusters(t *testing.T) {
	h := parse(t,
		"kubeadm-file=/etc/kubernetes/pki/ca.crt", "etcd-data=65600 1795100000",
		"pod-network=/etc/cni/net.d/10-weave.conflist", "pod-network=/run/flannel/subnet.env",
		"link=1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN", "link=2: eth0@if7: <BROADCAST,UP> mtu 1500", "link=5: cni0: <BROADCAST> mtu 1450",
		"link=6: flannel.1: <BROADCAST> mtu 1450", "link=7: weave: <BROADCAST> mtu 1376", "link=8: vethweabc@if3: <BROADCAST> mtu 1376", "link=9: cni-podman0: <BROADCAST> mtu 1500")
	if !slices.Equal(h.PodLinks, []string{"cni0", "flannel.1", "weave"}) || len(h.PodNetworkFiles) != 2 || len(h.KubeadmFiles) != 1 {
		t.Errorf("%q %q %q", h.PodLinks, h.PodNetworkFiles, h.KubeadmFiles)
	}
	if want := (EtcdData{KiB: 65600, Changed: time.Unix(1795100000, 0)}); h.Etcd == nil || *h.Etcd != want {
		t.Errorf("%+v", h.Etcd)
	}
	if want := (EtcdData{Changed: time.Unix(1795100000, 0)}); *parse(t, "etcd-data= 1795100000").Etcd != want {
		t.Error("data whose size takes too long to tell")
	}
	if k := parse(t, "kubelet-server=https://10.0.0.10:6443").Kubelet; k == nil || k.CAHash != "" {
		t.Errorf("a kubeconfig that was half written: %+v", k)
	}
	c := parse(t, "control-plane=1", "control-plane-flag=cluster-name=lab", "control-plane-flag=advertise-address=10.0.0.10", "control-plane-flag=cluster-cidr=10.244.0.0/16",
		"control-plane-flag=enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs", "control-plane-flag=admission-control-config-file=/a",
		"control-plane-flag=audit-log-path=/b", "control-plane-flag=encryption-provider-config=/c",
		"control-plane-flag=initial-cluster=a=https://10.0.0.10:2380,b=https://10.0.0.20:2380", "cluster-ca="+certificateOf(t)).ControlPlane
	if c.Advertised != "10.0.0.10" || c.Name != "lab" || c.PodCIDR != "10.244.0.0/16" || !slices.Equal(c.EtcdMembers, []string{"a", "b"}) || c.Since.IsZero() {
		t.Errorf("%+v", c)
	}
	if want := (Defences{"NodeRestriction,DenyServiceExternalIPs", "/a", "/b", "/c"}); c.Defences != want {
		t.Errorf("%+v", c.Defences)
	}
	for _, line := range []string{"etcd-data=x 1", "etcd-data=1", "kubeadm=init-done\nrecorded-ca=!"} {
		if _, err := Parse(answerOf(line)); err == nil || errors.Is(err, ErrTruncated) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestRestoring: an etcd with which other members could go on is named by a token of kgpu's, or by none.
func TestRestoring(t *testing.T) {
	for line, want := range map[string]*Restoring{
		"":           nil,
		"5a5a begun": {Archive: "5a5a"},
		"5a5a restored kgpu-00112233445566aa-0011223344556677 cp1=https://10.0.0.10:2380": {
			Archive: "5a5a", Done: true, Token: "kgpu-00112233445566aa-0011223344556677", Peers: "cp1=https://10.0.0.10:2380",
		},
		"5a5a restored":                       {Archive: "5a5a", Done: true},
		"5a5a restored none":                  {Archive: "5a5a", Done: true},
		"5a5a restored kgpu-$(reboot)-1 cp1=": {Archive: "5a5a", Done: true},
	} {
		var h Host
		if err := restoring(answer{"restore": {line}}, &h); err != nil {
			t.Error(err)
		}
		if h.Restoring == nil != (want == nil) || want != nil && *h.Restoring != *want {
			t.Errorf("%q: %+v", line, h.Restoring)
		}
	}
}
