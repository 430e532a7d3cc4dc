package machine

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// How long before its end a certificate is renewed by `kgpu up`, and how long before `kgpu doctor` warns of it.
const (
	RenewBefore = 30 * 24 * time.Hour
	WarnBefore  = 60 * 24 * time.Hour
)

// Renewer says who renews a certificate.
type Renewer string

// The renewers.
const (
	ByKgpu    Renewer = "kgpu"     // kubeadm made it, and kgpu has kubeadm renew it
	ByKubelet Renewer = "kubelet"  // the kubelet does so itself, in the last third of its time
	ByNobody  Renewer = "nobody"   // a certificate authority, a file of a kubelet that does not rotate, or somebody else's
	Unchecked Renewer = "unneeded" // the kubelet's own for its port, which it signed itself: nobody checks its end
)

// Certificate is a certificate of Kubernetes on a host, and what becomes of it.
type Certificate struct {
	facts.Certificate
	Name    string        // its owner
	Left    time.Duration // until it ends; negative if it has ended
	Renewer Renewer
}

// certificateNames are the owners of certificates, by their files below /etc/kubernetes.
var certificateNames = map[string]string{
	"pki/ca.crt": "CA", "pki/apiserver.crt": "API server", "pki/apiserver-kubelet-client.crt": "API server to kubelets",
	"pki/apiserver-etcd-client.crt": "API server to etcd", "pki/front-proxy-ca.crt": "front proxy CA", "pki/front-proxy-client.crt": "front proxy",
	"pki/etcd/ca.crt": "etcd CA", "pki/etcd/server.crt": "etcd", "pki/etcd/peer.crt": "etcd peer", "pki/etcd/healthcheck-client.crt": "etcd health check",
	"admin.conf": "admin", "super-admin.conf": "super admin", "controller-manager.conf": "controller manager", "scheduler.conf": "scheduler", "kubelet.conf": "kubelet",
}

// The certificate that kubectl and others meet, and the folders of kubeadm's and the kubelet's.
const (
	APIServerCertificate = "/etc/kubernetes/pki/apiserver.crt"
	kubernetesFolder     = "/etc/kubernetes/"
	kubeletFolder        = "/var/lib/kubelet/pki/"
)

// CertificateName is the owner of a certificate, by its file.
func CertificateName(file string) string {
	if below, ok := strings.CutPrefix(file, kubernetesFolder); ok {
		return cmp.Or(certificateNames[below], below)
	}
	switch base := path.Base(file); {
	case strings.HasPrefix(base, "kubelet-client"):
		return "kubelet"
	case strings.HasPrefix(file, kubeletFolder):
		return "kubelet's port"
	}
	return file
}

// Certificates are those of a host at a time, the one that ends first before the others. One that cannot be read comes first.
func Certificates(f *facts.Host, now time.Time) []Certificate {
	var out []Certificate
	for _, c := range f.Certificates {
		j := Certificate{Certificate: c, Name: CertificateName(c.Path), Renewer: renewerOf(c)}
		if !c.Ends.IsZero() {
			j.Left = c.Ends.Sub(now)
		}
		out = append(out, j)
	}
	slices.SortStableFunc(out, func(a, b Certificate) int { return a.Ends.Compare(b.Ends) })
	return out
}

func renewerOf(c facts.Certificate) Renewer {
	switch {
	case c.Path == kubeletFolder+"kubelet-client-current.pem", c.Path == kubeletFolder+"kubelet-server-current.pem":
		return ByKubelet
	case c.Path == kubeletFolder+"kubelet.crt":
		return Unchecked
	case renewedByKubeadm(c.Path):
		return ByKgpu
	}
	return ByNobody
}

// renewedByKubeadm reports whether kubeadm renews what is in the file: not authorities, the kubelet's, or what others put there.
func renewedByKubeadm(file string) bool {
	below, ok := strings.CutPrefix(file, kubernetesFolder)
	name := certificateNames[below]
	return ok && name != "" && name != "kubelet" && !strings.HasSuffix(name, "CA")
}

// Ended reports whether the certificate is no longer valid.
func (c Certificate) Ended() bool { return !c.Ends.IsZero() && c.Left <= 0 && c.Renewer != Unchecked }

// Due reports whether somebody has to see to the certificate: it ends within the given time, or has ended. One that its
// kubelet renews is due in the last tenth of its life only, in which the kubelet has tried for long. One that ends by then
// however it is renewed, because it is made for a short life, is due in the last third of it.
func (c Certificate) Due(within time.Duration) bool {
	if c.Ends.IsZero() || c.Renewer == Unchecked {
		return false
	}
	if life := c.Ends.Sub(c.Begins); !c.Begins.IsZero() {
		if c.Renewer == ByKubelet {
			within = min(within, life/10)
		}
		within = min(within, life/3)
	}
	return c.Left < within
}

// KubeletCertificate is the certificate by which a host's kubelet is known to the API server; nil if there is none.
func KubeletCertificate(f *facts.Host, now time.Time) *Certificate {
	for _, c := range Certificates(f, now) {
		if c.Name == "kubelet" {
			return &c
		}
	}
	return nil
}
