package plan

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/scripts/manifests"
)

// initOf is the step that makes the cluster of an inventory.
func initOf(t *testing.T, yaml string) *graph.Step {
	t.Helper()
	inv := decode(t, threeHosts+yaml)
	return stepOf(planUp(t, inv, hostFacts(inv)), "cp1", "cluster/init")
}

// What a new cluster defends itself by depends on its version and on the inventory.
func TestSecurityOfNewClusters(t *testing.T) {
	const old = "network: flannel\nruntime: containerd\nkubernetes:\n  allowEndOfLife: true\n  version: "
	for name, c := range map[string]struct {
		yaml          string
		files         []string
		without, with []string // in what kubeadm reads
	}{
		"by default": {
			old + `"1.30"`, []string{admissionFile, auditPolicy}, nil,
			[]string{"seccompDefault: true", "audit-log-maxage: \"30\"", "enable-admission-plugins: NodeRestriction,DenyServiceExternalIPs", "hostPath: /var/log/kubernetes/audit"},
		},
		"before 1.30": {old + `"1.29"`, nil, []string{"seccompDefault", "audit", "admission", "profiling", "extraVolumes"}, nil},
		"without pod security": {
			"security: {podSecurity: privileged}", []string{auditPolicy}, []string{"admission-control-config-file"}, []string{"audit-log-path", "DenyServiceExternalIPs"},
		},
		"without a log":    {"security: {auditLog: false}", []string{admissionFile}, []string{"audit"}, []string{"admission-control-config-file", "DenyServiceExternalIPs"}},
		"without anything": {"security: {podSecurity: privileged, auditLog: false}", nil, []string{"extraVolumes"}, []string{"DenyServiceExternalIPs", "seccompDefault: true"}},
		"with encryption":  {"security: {encryptSecrets: true}", []string{admissionFile, auditPolicy}, nil, []string{"name: encryption-provider-config", "value: " + encryption}},
		"with encryption alone": {
			"security: {podSecurity: privileged, auditLog: false, encryptSecrets: true}", nil, []string{"kgpu-audit"}, []string{"name: kgpu-security", encryption},
		},
		"flags of the owner's": {
			"kubernetes: {clusterConfiguration: {apiServer: {extraArgs: [{name: audit-log-maxage, value: \"90\"}, {name: v, value: \"4\"}], extraVolumes: [{name: mine, hostPath: /a, mountPath: /a}]}}}",
			[]string{admissionFile, auditPolicy},
			[]string{`value: "30"`},
			[]string{`value: "90"`, "name: v\n", "name: mine\n", "name: kgpu-audit\n", "audit-log-path"},
		},
		"flags of the owner's before v1beta4": {
			old + "\"1.30\"\n  clusterConfiguration: {apiServer: {extraArgs: {audit-log-maxage: \"90\"}}}",
			[]string{admissionFile, auditPolicy},
			[]string{`"30"`},
			[]string{`audit-log-maxage: "90"`, "audit-log-path", "profiling"},
		},
	} {
		step := initOf(t, c.yaml)
		own := func(file string) bool { return strings.HasPrefix(file, madeWithDir) }
		if got := slices.DeleteFunc(sortedKeys(step.Input.Files), own); !slices.Equal(got, c.files) {
			t.Errorf("%s: files %v", name, got)
		}
		config := step.Input.Values["kubeadm"]
		for _, word := range c.without {
			if strings.Contains(config, word) {
				t.Errorf("%s: kubeadm's file has %s:\n%s", name, word, config)
			}
		}
		for _, word := range c.with {
			if !strings.Contains(config, word) {
				t.Errorf("%s: kubeadm's file has no %s:\n%s", name, word, config)
			}
		}
		if _, asked := step.Input.Values["encryption"]; asked != strings.Contains(c.yaml, "encryptSecrets") {
			t.Errorf("%s: a key: %t", name, asked)
		}
		if _, logs := step.Input.Values["auditLog"]; logs != slices.Contains(c.files, auditPolicy) {
			t.Errorf("%s: room for a log: %t", name, logs)
		}
	}
	if text := string(initOf(t, "security: {podSecurity: restricted}").Input.Files[admissionFile].Content); strings.Count(text, ": restricted\n") != 3 {
		t.Error(text)
	}
}

// Pods of kgpu's that need the node are where the cluster's level for namespaces without a label does not reach.
func TestPodsThatNeedTheNode(t *testing.T) {
	found := 0
	for _, a := range addons {
		objects := objectsIn(t, a.manifest)
		levels := map[string]any{"kube-system": "privileged"}
		for _, o := range objects {
			meta := o["metadata"].(object)
			if labels, ok := meta["labels"].(object); o["kind"] == "Namespace" && ok {
				levels[meta["name"].(string)] = labels["pod-security.kubernetes.io/enforce"]
			}
		}
		for _, o := range objects {
			pods, err := manifests.Encode(o)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(pods, "privileged: true") && !strings.Contains(pods, "hostPath:") && !strings.Contains(pods, "hostNetwork: true") {
				continue
			}
			found++
			if namespace, _ := o["metadata"].(object)["namespace"].(string); levels[namespace] != "privileged" {
				t.Errorf("%s: pods that need the node are in %s, whose level is %v", a.ID, namespace, levels[namespace])
			}
		}
	}
	if found < 3 {
		t.Errorf("%d objects were looked at", found)
	}
}

// A control plane that runs does not come to encrypt Secrets by an up, and the plan says so; one that was given the flag since does.
func TestSecretsOfAClusterThatRuns(t *testing.T) {
	const asked = threeHosts + "security: {encryptSecrets: true}\n"
	for file, refused := range map[string]bool{"": true, encryption: false} {
		_, seen := settled(t, asked)
		seen["cp1"].ControlPlane.Defences.Encryption = file
		if _, err := Up(decode(t, asked), seen); (err != nil) != refused || err != nil && !refuses(err, "security.encryptSecrets") {
			t.Errorf("with the flag %q: %v", file, err)
		}
	}
}
