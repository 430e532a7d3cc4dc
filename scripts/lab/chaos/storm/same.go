package storm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"kgpu.dev/kgpu/scripts/lab/snapshot"
)

// AllowList is what may differ between two runs, a rule a line, with reasons.
//
//go:embed same.txt
var AllowList string

// rule is a line of the allow-list.
type rule struct {
	verb, kind string
	key        *regexp.Regexp
}

var ruleLine = regexp.MustCompile(`^(out|value|rename)\s+(\S+)\s+(\S.*?)\s+# \S`)

func parseRules(text string) ([]rule, error) {
	var rules []rule
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := ruleLine.FindStringSubmatch(line)
		if f == nil {
			return nil, fmt.Errorf("allow-list: %q: want verb, kind, expression, # reason", line)
		}
		key, err := regexp.Compile(f[3])
		if err != nil {
			return nil, fmt.Errorf("allow-list: %q: %w", line, err)
		}
		rules = append(rules, rule{f[1], f[2], key})
	}
	return rules, nil
}

// comparable brings facts in the form in which they are compared: a line each, in order.
func comparable(facts []snapshot.Fact, rules []rule) []string {
	var lines []string
facts:
	for _, f := range facts {
		key := f.Key
		for _, r := range rules {
			switch {
			case r.kind != f.Kind || !r.key.MatchString(key):
			case r.verb == "out":
				continue facts
			case r.verb == "rename":
				f.Key, f.Value = r.key.ReplaceAllString(f.Key, "~"), r.key.ReplaceAllString(f.Value, "~")
			case f.Kind == "file":
				if i := strings.LastIndexByte(f.Value, ' '); i >= 0 {
					f.Value = f.Value[:i]
				}
			default:
				f.Value = ""
			}
		}
		lines = append(lines, strings.TrimSpace(f.Kind+" "+f.Key+"  "+f.Value))
	}
	slices.Sort(lines)
	return lines
}

// differences lists what only one of two sorted lists has.
func differences(want, got []string) []string {
	var out []string
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0] < got[0]:
			out, want = append(out, "- "+want[0]), want[1:]
		case len(want) == 0 || got[0] < want[0]:
			out, got = append(out, "+ "+got[0]), got[1:]
		default:
			want, got = want[1:], got[1:]
		}
	}
	return out
}

// State is what a run made of the hosts and the cluster, in comparable form, by host; "cluster" is one of them. What begins
// with "ledger of" has ledger entries as a whole.
type State map[string][]string

const ledgerOf = "ledger of "

// state looks at everything.
func (l *Lab) state(ctx context.Context) (State, error) {
	rules, err := parseRules(AllowList)
	if err != nil {
		return nil, err
	}
	s := State{}
	var mu sync.Mutex
	err = l.each(func(host string) error {
		file, err := l.snapshot(ctx, host, "state")
		if err != nil {
			return err
		}
		facts, err := snapshot.Read(file)
		if err != nil {
			return err
		}
		entries, arguments, err := ledger(filepath.Join(l.kgpuOf(host), "ledger"))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s[host] = comparable(append(facts, arguments...), rules)
		s[ledgerOf+host] = comparable(entries, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	cluster, err := l.exec(ctx, l.Hosts[0], clusterFacts)
	if err != nil {
		return nil, err
	}
	s["cluster"] = strings.Split(strings.TrimSpace(cluster), "\n")
	slices.Sort(s["cluster"])
	return s, nil
}

// clusterFacts prints the nodes with their labels, taints, readiness and the cards that they offer, and the names of all that
// kgpu and kubeadm made, and of Jobs and namespaces, which a proof leaves none of: those that are going have a minute for it.
const clusterFacts = `HOME=$(mktemp -d) # for kubectl's cache
export HOME KUBECONFIG=/etc/kubernetes/admin.conf
trap 'rm -r "$HOME"' EXIT
for i in $(seq 120); do
  [ -n "$(kubectl get namespaces -o jsonpath='{.items[?(@.status.phase=="Terminating")].metadata.name}')" ] || break
  sleep 0.5
done
kubectl get nodes -o jsonpath='{range .items[*]}node {.metadata.name} {.metadata.labels} {.spec.taints} Ready={.status.conditions[?(@.type=="Ready")].status} cards={.status.allocatable.nvidia\.com/gpu}{"\n"}{end}'
kubectl get namespaces,daemonsets,deployments,jobs,runtimeclasses,configmaps,secrets,serviceaccounts,services,roles,rolebindings,clusterroles,clusterrolebindings --all-namespaces \
  -o jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}'`

func (l *Lab) snapshot(ctx context.Context, host, name string) (string, error) {
	file := filepath.Join(l.dir, name+"."+host)
	_, err := l.verb(ctx, "snapshot", "-o", file, host)
	return file, err
}

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// ledger reads what kgpu says it changed: an entry a fact, and each argument of an entry a fact, once.
func ledger(dir string) (entries, arguments []snapshot.Fact, err error) {
	kinds, err := filepath.Glob(filepath.Join(dir, "*", "kind"))
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, path := range kinds {
		kind, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(path), "args"))
		if err != nil {
			return nil, nil, err
		}
		name, list := strings.TrimSpace(string(kind)), strings.Split(strings.TrimSpace(string(args)), "\n")
		for i := range list {
			list[i] = uid.ReplaceAllString(list[i], "(uid)") // of node objects: each cluster makes its own
		}
		slices.Sort(list)
		entries = append(entries, snapshot.Fact{Kind: "ledger", Key: name + " " + strings.Join(list, " ")})
		for _, argument := range list {
			if key := name + " " + argument; !seen[key] {
				seen[key] = true
				arguments = append(arguments, snapshot.Fact{Kind: "ledger", Key: key})
			}
		}
	}
	return entries, arguments, nil
}

// Differences lists what differs, with the hosts' names. strict wants the same ledger entries, each as often: where a host
// went down, kgpu may have written one twice, the first time for a change that did not come about.
func (s State) Differences(got State, strict bool) []string {
	var out []string
	for _, host := range slices.Sorted(keys(s, got)) {
		if !strict && strings.HasPrefix(host, ledgerOf) {
			continue
		}
		for _, d := range differences(s[host], got[host]) {
			out = append(out, host+": "+d)
		}
	}
	return out
}

func keys(a, b State) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range a {
			if !yield(k) {
				return
			}
		}
		for k := range b {
			if _, both := a[k]; !both && !yield(k) {
				return
			}
		}
	}
}
