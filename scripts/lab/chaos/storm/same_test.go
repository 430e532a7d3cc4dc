package storm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/snapshot"
)

func TestAllowListHasReasons(t *testing.T) {
	if rules, err := parseRules(AllowList); err != nil || len(rules) == 0 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	for _, bad := range []string{"out file ^/x", "out file # why", "drop file ^/x # why", "out file ( # why"} {
		if _, err := parseRules(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestWhatDiffersIsTold(t *testing.T) {
	rules, err := parseRules(AllowList)
	if err != nil {
		t.Fatal(err)
	}
	undisturbed := []snapshot.Fact{
		{Kind: "file", Key: "/etc/kubernetes/pki/ca.key", Value: "0600 0:0 aaaa"},
		{Kind: "file", Key: "/etc/fstab", Value: "0644 0:0 aaaa"},
		{Kind: "package", Key: "kubelet:amd64", Value: "1.36.3 installed hold"},
		{Kind: "route", Key: "10.244.1.0/24 via 10.244.1.0 dev flannel.1 onlink"},
		{Kind: "route", Key: "fe80::/64 dev veth1234 proto kernel"},
		{Kind: "unit", Key: "cri-containerd-1234.scope", Value: "loaded active running"},
		{Kind: "unit", Key: "kubelet.service", Value: "loaded active running"},
		{Kind: "link", Key: "flannel.1", Value: "aa:bb mtu 1450 unknown"},
		{Kind: "iptables-save", Key: `nat -A KUBE-SERVICES -d 10.97.3.4/32 -p tcp -m comment --comment "kgpu-notebook/notebook:http cluster IP" -m tcp --dport 8888 -j KUBE-SVC-A`},
	}
	same := slices.Clone(undisturbed)
	same[0].Value = "0600 0:0 bbbb"
	same[3].Key = "10.244.2.0/24 via 10.244.2.0 dev flannel.1 onlink"
	same[4].Key = "fe80::/64 dev veth5678 proto kernel"
	same[5].Key = "cri-containerd-5678.scope"
	same[7].Value = "cc:dd mtu 1450 unknown"
	same[8].Key = strings.Replace(same[8].Key, "10.97.3.4", "10.101.2.1", 1)
	if d := differences(comparable(undisturbed, rules), comparable(same, rules)); len(d) > 0 {
		t.Errorf("two undisturbed runs differ: %q", d)
	}
	for name, change := range map[string]func(f []snapshot.Fact) []snapshot.Fact{
		"mode of a key":     func(f []snapshot.Fact) []snapshot.Fact { f[0].Value = "0644 0:0 bbbb"; return f },
		"content of a file": func(f []snapshot.Fact) []snapshot.Fact { f[1].Value = "0644 0:0 bbbb"; return f },
		"a hold":            func(f []snapshot.Fact) []snapshot.Fact { f[2].Value = "1.36.3 installed install"; return f },
		"a unit":            func(f []snapshot.Fact) []snapshot.Fact { f[6].Value = "loaded failed failed"; return f },
		"a file too many": func(f []snapshot.Fact) []snapshot.Fact {
			return append(f, snapshot.Fact{Kind: "file", Key: "/etc/apt/sources.list.d/x.list", Value: "0644 0:0 a"})
		},
		"another port of the notebook": func(f []snapshot.Fact) []snapshot.Fact {
			f[8].Key = strings.Replace(f[8].Key, "8888", "8889", 1)
			return f
		},
		"a route too few": func(f []snapshot.Fact) []snapshot.Fact { return slices.Delete(f, 3, 4) },
		"a route twice":   func(f []snapshot.Fact) []snapshot.Fact { return append(f, f[3]) },
	} {
		if d := differences(comparable(undisturbed, rules), comparable(change(slices.Clone(undisturbed)), rules)); len(d) == 0 {
			t.Errorf("%s: not told", name)
		}
	}
}

func TestLedgerEntriesThatAreThereTwice(t *testing.T) {
	dir := t.TempDir()
	for number, arguments := range map[string]string{"000001": "b\na\n", "000002": "b\na\n", "000003": "c\n"} {
		if err := os.MkdirAll(filepath.Join(dir, number), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"kind": "packages\n", "args": arguments} {
			if err := os.WriteFile(filepath.Join(dir, number, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, arguments, err := ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	twice := State{"w1": comparable(arguments, nil), ledgerOf + "w1": comparable(entries, nil)}
	once := State{"w1": {"ledger packages a", "ledger packages b", "ledger packages c"}, ledgerOf + "w1": {"ledger packages a b", "ledger packages c"}}
	if d := once.Differences(twice, false); len(d) > 0 {
		t.Errorf("%q", d)
	}
	if d := once.Differences(twice, true); !slices.Equal(d, []string{"ledger of w1: + ledger packages a b"}) {
		t.Errorf("%q", d)
	}
}
