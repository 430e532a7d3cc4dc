package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aKey is a private key that belongs to no certificate, as a kubeconfig has it.
func aKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// lies has the control plane tell lies about the way into its cluster, in the file that kubeadm made: a program to run, a proxy, a
// server at a port that is no port, a key that is not the certificate's. kgpu runs nothing here with them and writes nothing, and
// goes in again when the host tells the truth.
func (c *cluster) lies(t *testing.T) {
	const conf, truth = "/etc/kubernetes/admin.conf", "/root/admin.conf"
	dir := t.TempDir()
	file, ran := filepath.Join(dir, "mine"), filepath.Join(dir, "ran")
	calls := [][]string{{"kubeconfig", "-i", c.inventory, "--file", file}, {"kubeconfig", "-i", c.inventory, "--merge"}}
	for name, edit := range map[string]string{
		"a program":   `s|^    client-key-data:|    exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["` + ran + `"], interactiveMode: Never}\n&|`,
		"a proxy":     `s|^    server:|    proxy-url: http://192.0.2.66:3128\n&|`,
		"a port":      `s|^\(    server: https://\).*|\1` + c.addr["cp1"] + `:80@127.0.0.1:6443|`,
		"another key": `s|^\(    client-key-data: \).*|\1` + aKey(t) + `|`,
	} {
		t.Run(name, func(t *testing.T) {
			c.exec(t, "cp1", "cp -a "+conf+" "+truth+"; sed -i '"+edit+"' "+conf+"; ! cmp -s "+conf+" "+truth)
			defer c.exec(t, "cp1", "mv "+truth+" "+conf)
			for _, args := range calls {
				if said := kgpu(t, 12, args...).stderr.String(); !strings.Contains(said, "[KUBECONFIG_UNTRUSTED]") || !strings.Contains(said, "cp1") {
					t.Errorf("kgpu %s says %s", args[0], said)
				}
			}
			for _, trace := range []string{ran, file, filepath.Join(operatorHome, ".kube")} {
				if _, err := os.Lstat(trace); !os.IsNotExist(err) {
					t.Errorf("%s is there: %v", trace, err)
				}
			}
		})
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Join(operatorHome, ".kube")) })
	for _, args := range calls {
		kgpu(t, 0, args...)
	}
}
