package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// defended holds what a new cluster has against its own users, and against who reads its disk. Secrets are encrypted.
func (c *cluster) defended(t *testing.T) {
	refused := func(what, why string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), c.kubectl, append([]string{"--kubeconfig", c.kubeconfig, "-n", "default"}, args...)...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), why) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	refused("a pod that rules its node", `violates PodSecurity "baseline:latest"`, "run", "ruler", "--image=x", "--privileged")
	refused("an address of somebody else", "Use of external IPs is denied", "apply", "-f", file(t, "service.yaml",
		"{apiVersion: v1, kind: Service, metadata: {name: taken}, spec: {externalIPs: [8.8.8.8], ports: [{port: 53}]}}"))
	if config := c.k(t, "get", "--raw", "/api/v1/nodes/w1/proxy/configz"); !strings.Contains(config, `"seccompDefault":true`) {
		t.Errorf("w1's kubelet: %s", config)
	}

	c.k(t, "-n", "default", "create", "configmap", "e2e-plain", "--from-literal=a=plain-in-etcd")
	c.k(t, "-n", "default", "create", "secret", "generic", "e2e-hidden", "--from-literal=a=hidden-in-etcd")
	found := lines(c.exec(t, "cp1", `
		has() { if grep -qra -e "$1" "$2"; then echo "$3"; fi; }
		has '"name":"ruler"' /var/log/kubernetes/audit/audit.log 'the pod that was refused'
		has '"resource":"secrets","namespace":"default","name":"e2e-hidden"' /var/log/kubernetes/audit/audit.log 'the Secret that was made'
		has plain-in-etcd /var/lib/etcd/member 'plain text'
		has k8s:enc:secretbox:v1:kgpu: /var/lib/etcd/member 'what the key encrypted'
		has hidden-in-etcd /var/lib/etcd/member 'A SECRET IN ETCD'
		has "$(printf hidden-in-etcd | base64)" /var/log/kubernetes/audit/audit.log 'A SECRET IN THE LOG'
		has hidden-in-etcd /var/log/kubernetes/audit/audit.log 'A SECRET IN THE LOG'
		has --audit-log-maxsize=100 /etc/kubernetes/manifests/kube-apiserver.yaml 'rotation by size'
		has --audit-log-maxbackup=10 /etc/kubernetes/manifests/kube-apiserver.yaml 'rotation of the files'
		stat -c '%a %U' /etc/kubernetes/kgpu/encryption.yaml /var/log/kubernetes/audit/audit.log`))
	want := []string{
		"the pod that was refused", "the Secret that was made", "plain text", "what the key encrypted", "rotation by size", "rotation of the files", "600 root", "600 root",
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("on the control plane: %q, want %q", found, want)
	}
	c.k(t, "-n", "default", "delete", "configmap/e2e-plain", "secret/e2e-hidden")
}
