package e2e

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	apiServerFile = "/etc/kubernetes/pki/apiserver.crt"
	kubeletFile   = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// leaves are what a control plane has of certificates that kubeadm renews, and the authority of each.
var leaves = map[string]string{
	apiServerFile: "ca",
	"/etc/kubernetes/pki/apiserver-kubelet-client.crt": "ca",
	"/etc/kubernetes/pki/apiserver-etcd-client.crt":    "etcd/ca",
	"/etc/kubernetes/pki/front-proxy-client.crt":       "front-proxy-ca",
	"/etc/kubernetes/pki/etcd/server.crt":              "etcd/ca",
	"/etc/kubernetes/pki/etcd/peer.crt":                "etcd/ca",
	"/etc/kubernetes/pki/etcd/healthcheck-client.crt":  "etcd/ca",
	"/etc/kubernetes/admin.conf":                       "ca",
	"/etc/kubernetes/super-admin.conf":                 "ca",
	"/etc/kubernetes/controller-manager.conf":          "ca",
	"/etc/kubernetes/scheduler.conf":                   "ca",
}

var clientCertificate = regexp.MustCompile(`client-certificate-data: (\S+)`)

// aged makes a certificate on a host one that ends then, a year after it began: signed by the same authority for the same key.
func (l *lab) aged(t *testing.T, host, file, authority string, ends time.Time) {
	t.Helper()
	block := func(text string) *pem.Block { // the first: a kubelet has its key behind its certificate
		b, _ := pem.Decode([]byte(text))
		if b == nil {
			t.Fatalf("%s has no PEM", file)
		}
		return b
	}
	text := l.exec(t, host, "cat "+file) + "\n"
	was := text
	config := clientCertificate.FindStringSubmatch(text)
	if path.Ext(file) == ".conf" {
		decoded, err := base64.StdEncoding.DecodeString(config[1])
		if err != nil {
			t.Fatal(err)
		}
		was = string(decoded)
	}
	ca, err := x509.ParseCertificate(block(l.exec(t, "cp1", "cat /etc/kubernetes/pki/"+authority+".crt")).Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template, err := x509.ParseCertificate(block(was).Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = ends.AddDate(-1, 0, 0), ends
	der, err := x509.CreateCertificate(rand.Reader, template, ca, template.PublicKey, privateKey(t, block(l.exec(t, "cp1", "cat /etc/kubernetes/pki/"+authority+".key")).Bytes))
	if err != nil {
		t.Fatal(err)
	}
	now := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	old := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block(was).Bytes}))
	if path.Ext(file) == ".conf" {
		old, now = config[1], base64.StdEncoding.EncodeToString([]byte(now))
	}
	if !strings.Contains(text, old) {
		t.Fatalf("%s is not as it should be", file)
	}
	l.exec(t, host, fmt.Sprintf("cat >%s <<'END'\n%sEND", file, strings.Replace(text, old, now, 1)))
}

func privateKey(t *testing.T, der []byte) crypto.PrivateKey {
	t.Helper()
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// served is when the certificate ends that the API server shows, and the names in it.
func (l *lab) served(t *testing.T) (ends time.Time, names []string) {
	t.Helper()
	conn, err := tls.Dial("tcp", l.addr["cp1"]+":6443", &tls.Config{InsecureSkipVerify: true}) // what it shows is looked at
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cert := conn.ConnectionState().PeerCertificates[0]
	return cert.NotAfter, cert.DNSNames
}

// certificates are made short, and some end, on a cluster that is up: kgpu says so, and renews them.
func (c *cluster) certificates(t *testing.T) {
	uids := func() string {
		return c.k(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)
	}
	before := uids()
	soon := time.Now().AddDate(0, 0, 9)
	c.aged(t, "cp1", apiServerFile, "ca", soon)
	c.aged(t, "cp1", "/etc/kubernetes/admin.conf", "ca", soon)
	c.aged(t, "w1", kubeletFile, "ca", time.Now().Add(-time.Hour))
	c.exec(t, "w1", "systemctl restart kubelet || :")
	t.Run("are listed", func(t *testing.T) {
		var told struct {
			Hosts []struct {
				Host         string
				Certificates []struct {
					Name       string
					Days       int
					Due, Ended bool
					Renews     string
				}
			}
		}
		if err := json.Unmarshal(kgpu(t, 2, "certs", "-i", c.inventory, "--output=json").stdout.Bytes(), &told); err != nil {
			t.Fatal(err)
		}
		var due []string
		for _, h := range told.Hosts {
			for _, cert := range h.Certificates {
				if cert.Due {
					due = append(due, fmt.Sprintf("%s %s %t", h.Host, cert.Name, cert.Ended))
				}
			}
		}
		slices.Sort(due)
		if want := []string{"cp1 API server false", "cp1 admin false", "w1 kubelet true"}; !slices.Equal(due, want) {
			t.Errorf("due are %q, want %q", due, want)
		}
		if found := c.diagnosed(t, 1); !slices.Contains(found, "cp1 HOST_CERTIFICATE_ENDS") || !slices.Contains(found, "w1 CERTIFICATE_EXPIRED") {
			t.Errorf("doctor finds %q", found)
		}
	})
	must(t, "are renewed by up", func(t *testing.T) {
		renamed := c.namedAnew(t)
		did := c.did(kgpu(t, 0, "up", "--output", "json", renamed))
		for _, want := range []string{"cp1 certs/renew", "cp1 cluster/token", "cp1 cluster/untoken", "w1 certs/kubelet"} {
			if !slices.Contains(did, want) {
				t.Errorf("%s is not among %q", want, did)
			}
		}
		if ends, names := c.served(t); ends.Before(time.Now().AddDate(0, 11, 0)) || !slices.Contains(names, newName) {
			t.Errorf("the API server shows a certificate that ends on %s and has the names %q", ends, names)
		}
		c.ready(t, "cp1", "w1", "w2")
		if after := uids(); after != before {
			t.Errorf("the nodes were %s, and are %s", before, after)
		}
		c.exec(t, "w1", "[[ ! -e /etc/kubernetes/bootstrap-kubelet.conf ]]; openssl x509 -noout -checkend 86400 -in "+kubeletFile)
		kgpu(t, 0, "certs", "-i", c.inventory)
		kgpu(t, 0, "plan", renamed)
		kgpu(t, 0, "plan", c.inventory) // a name that is there stays
	})
	must(t, "have all ended", func(t *testing.T) {
		long(t)
		c.sleptForAYear(t, uids)
	})
	t.Run("are renewed, and killed on the way", func(t *testing.T) {
		long(t)
		c.renewalIsKilled(t)
	})
}

// newName is one that the API server gets.
const newName = "k8s.example.com"

// namedAnew is an inventory that gives the API server another name.
func (c *cluster) namedAnew(t *testing.T) string {
	t.Helper()
	return file(t, "inventory.yaml", strings.Replace(read(t, c.inventory), "kubernetes:\n", "kubernetes:\n  clusterConfiguration: {apiServer: {certSANs: ["+newName+"]}}\n", 1))
}

// renewalIsKilled kills the step that renews with all that it runs, again and again, and lets up, or the same command, bring it to its end.
func (c *cluster) renewalIsKilled(t *testing.T) {
	for i, at := range []string{"[ -d /var/lib/kgpu/certificates ]", "[ -e /var/lib/kgpu/stale-pods/etcd ]", "[ ! -e /var/lib/kgpu/stale-pods/etcd ] && [ -e /var/lib/kgpu/stale-pods/kube-scheduler ]"} {
		s := start(t, "", "certs", "renew", "--yes", "-i", c.inventory)
		c.exec(t, "cp1", "timeout 120 bash -c 'until "+at+"; do sleep 0.02; done'; for unit in $(systemctl list-units --plain --no-legend 'kgpu-*.service' | cut -d' ' -f1); do systemctl kill --signal=KILL $unit || :; done")
		s.wait(t) // whatever became of it
		next := [][]string{{"up", "--output", "json", c.inventory}, {"certs", "renew", "--yes", "-i", c.inventory}}[i%2]
		kgpu(t, 0, next...)
		c.exec(t, "cp1", "[[ ! -e /var/lib/kgpu/certificates ]]; [[ -z $(ls /var/lib/kgpu/stale-pods) ]]")
		kgpu(t, 0, "plan", c.inventory)
		c.ready(t, "cp1", "w1", "w2")
	}
}

// sleptForAYear lets every certificate of the cluster end, and the hosts boot with what has ended.
func (c *cluster) sleptForAYear(t *testing.T, uids func() string) {
	before := uids()
	ended := time.Now().Add(-time.Hour)
	for file, authority := range leaves {
		c.aged(t, "cp1", file, authority, ended)
	}
	for _, host := range []string{"cp1", "w1", "w2"} {
		c.aged(t, host, kubeletFile, "ca", ended)
	}
	for _, host := range []string{"w1", "w2", "cp1"} {
		c.verb(t, "reboot", host)
	}
	did := c.did(kgpu(t, 0, "up", "--output", "json", c.inventory))
	for _, want := range []string{"cp1 certs/kubelet", "cp1 certs/renew", "w1 certs/kubelet", "w2 certs/kubelet"} {
		if !slices.Contains(did, want) {
			t.Errorf("%s is not among %q", want, did)
		}
	}
	if slices.Contains(did, "cp1 cluster/init") || slices.Contains(did, "w1 cluster/join") {
		t.Errorf("a membership was made anew: %q", did)
	}
	c.ready(t, "cp1", "w1", "w2")
	if after := uids(); after != before {
		t.Errorf("the nodes were %s, and are %s", before, after)
	}
	kgpu(t, 0, "plan", c.inventory)
}
