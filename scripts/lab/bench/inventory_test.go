package main

import (
	"crypto/ed25519"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/scripts/lab/place"
)

func testHosts(t *testing.T) []host {
	t.Helper()
	var list []host
	for i, name := range []string{"cp1", "thin1"} {
		key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(name, 32)[:32])).Public())
		if err != nil {
			t.Fatal(err)
		}
		h := host{name: name, address: netip.AddrFrom4([4]byte{10, 199, 7, byte(10 + i)}), key: key}
		h.sshd = netip.AddrPortFrom(h.address, uint16(22+i))
		list = append(list, h)
	}
	return list
}

func TestKnownHosts(t *testing.T) {
	list := testHosts(t)
	file := knownHosts(list)
	for name, want := range map[string]host{"10.199.7.10": list[0], "[10.199.7.11]:23": list[1]} {
		got, err := keyOf(file, name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Marshal()) != string(want.key.Marshal()) {
			t.Errorf("the key of %s is another host's", name)
		}
	}
	if _, err := keyOf(file, "10.199.7.12"); err == nil {
		t.Error("a host that is not there has a key")
	}
}

func TestInventory(t *testing.T) {
	l := &lab{dir: t.TempDir(), fingerprint: "AB", Place: place.Place{Cache: "/cache"}}
	path, trust, err := l.inventory("two", testHosts(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		SSH        struct{ Key, KnownHosts string }
		Kubernetes struct {
			ClusterConfiguration struct{ APIServer struct{ CertSANs []string } }
		}
		Hosts []struct {
			Address, Name, Role, PrivateAddress string
			SSH                                 struct{ Port int }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.SSH.KnownHosts != trust || got.SSH.Key != l.ClientKey() {
		t.Errorf("ssh: %+v", got.SSH)
	}
	if len(got.Hosts) != 2 || got.Hosts[0].Role != "control-plane" || got.Hosts[1].Role != "worker" ||
		got.Hosts[1].Address != "10.199.7.11" || got.Hosts[1].SSH.Port != 23 || got.Hosts[1].PrivateAddress != "10.199.7.11" {
		t.Errorf("hosts: %+v", got.Hosts)
	}
	if names := got.Kubernetes.ClusterConfiguration.APIServer.CertSANs; !slices.Equal(names, []string{"127.1.7.10"}) {
		t.Errorf("the API server's certificate has %q", names)
	}
	if known, err := os.ReadFile(trust); err != nil || string(known) != string(knownHosts(testHosts(t))) {
		t.Errorf("known_hosts %q, %v", known, err)
	}
}

func TestNodeList(t *testing.T) {
	got, err := nodeList(testHosts(t)[1:])
	const want = `{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Node","metadata":{"labels":{"node-role.kubernetes.io/worker":""},"name":"thin1"}}],"kind":"List"}`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}
