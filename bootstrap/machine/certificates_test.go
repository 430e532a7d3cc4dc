package machine

import (
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestWhoRenews: kubeadm renews its own, kubelets theirs, and nobody authorities or what others put beside them.
func TestWhoRenews(t *testing.T) {
	for file, want := range map[string]Renewer{
		"/etc/kubernetes/pki/apiserver.crt":               ByKgpu,
		"/etc/kubernetes/pki/etcd/peer.crt":               ByKgpu,
		"/etc/kubernetes/super-admin.conf":                ByKgpu,
		"/etc/kubernetes/pki/ca.crt":                      ByNobody,
		"/etc/kubernetes/pki/front-proxy-ca.crt":          ByNobody,
		"/etc/kubernetes/pki/etcd/ca.crt":                 ByNobody,
		"/etc/kubernetes/pki/mine.crt":                    ByNobody,
		"/etc/kubernetes/kubelet.conf":                    ByNobody,
		"/var/lib/kubelet/pki/kubelet-client.crt":         ByNobody,
		"/var/lib/kubelet/pki/kubelet-client-current.pem": ByKubelet,
		"/var/lib/kubelet/pki/kubelet-server-current.pem": ByKubelet,
		"/var/lib/kubelet/pki/kubelet.crt":                Unchecked,
	} {
		if got := renewerOf(facts.Certificate{Path: file}); got != want {
			t.Errorf("%s is renewed by %s, want %s", file, got, want)
		}
	}
}

// TestDue: a certificate is due in its last days, and one of a short life in the last third of it only.
func TestDue(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		path       string
		life, left time.Duration
		want       bool
	}{
		{APIServerCertificate, 365 * day, 31 * day, false},
		{APIServerCertificate, 365 * day, 29 * day, true},
		{APIServerCertificate, 365 * day, -day, true},
		{APIServerCertificate, 15 * day, 6 * day, false},
		{APIServerCertificate, 15 * day, 4 * day, true},
		{kubeletFolder + "kubelet-client-current.pem", 365 * day, 40 * day, false},
		{kubeletFolder + "kubelet-client-current.pem", 240 * day, 25 * day, false},
		{kubeletFolder + "kubelet-client-current.pem", 240 * day, 23 * day, true},
		{kubeletFolder + "kubelet.crt", 365 * day, -day, false},
	} {
		end := now.Add(c.left)
		f := &facts.Host{Certificates: []facts.Certificate{{Path: c.path, Begins: end.Add(-c.life), Ends: end}}}
		if got := Certificates(f, now)[0].Due(RenewBefore); got != c.want {
			t.Errorf("%s of %s with %s left: %t", c.path, c.life, c.left, got)
		}
	}
}
