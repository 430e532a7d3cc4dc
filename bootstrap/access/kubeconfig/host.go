package kubeconfig

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// MaxFromHost is how many bytes a kubeconfig of a host may have: some ten times what kubeadm writes.
const MaxFromHost = 64 << 10

// maxKey is how many bytes a private key may have, PEM: one of RSA with 16384 bits has 13 thousand. Longer ones take long to check.
const maxKey = 16 << 10

// keysFromHost are the keys that a kubeconfig may have, by the path to them. Whatever else it can say sends kubectl to another
// place than the server, has it believe another one, or has it read a file or run a program of the machine that it runs on.
// as-user-extra is of Kubernetes 1.7 and 1.8, which write it empty; preferences is empty, too.
// Sources: createKubeConfigFile in https://github.com/kubernetes/kubernetes/blob/master/cmd/kubeadm/app/phases/kubeconfig/kubeconfig.go
// and https://github.com/kubernetes/client-go/blob/master/tools/clientcmd/api/v1/types.go.
var keysFromHost = map[string][]string{
	"":                 {"apiVersion", "kind", "clusters", "users", "contexts", "current-context", "preferences"},
	"clusters":         {"name", "cluster"},
	"clusters.cluster": {"server", "certificate-authority-data"},
	"users":            {"name", "user"},
	"users.user":       {"client-certificate-data", "client-key-data", "as-user-extra"},
	"contexts":         {"name", "context"},
	"contexts.context": {"cluster", "user", "namespace"},
}

// FromHost reads a kubeconfig that a host has sent, as kubeadm makes it, and believes nothing in it: it has the keys that kubeadm
// writes and no others, the key is the certificate's, the certificate was signed by the certificate authority, and the
// server is https://HOST:PORT. What it returns is made of what was understood, has no names, and no byte that only the host
// knows the meaning of. Its errors do not repeat values.
func FromHost(data []byte) (*Access, error) {
	if len(data) > MaxFromHost {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(data), MaxFromHost)
	}
	var root, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&root); err != nil {
		return nil, errNoKubeconfig
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	if err := onlyKnown(root.Content[0], ""); err != nil {
		return nil, err
	}
	var f file
	if err := root.Decode(&f); err != nil || f.APIVersion != "v1" || f.Kind != "Config" {
		return nil, errNoKubeconfig
	}
	if len(f.Clusters) != 1 || len(f.Users) != 1 {
		return nil, fmt.Errorf("%d clusters and %d users, one of each expected", len(f.Clusters), len(f.Users))
	}
	return f.verified()
}

var errNoKubeconfig = errors.New("it is not the YAML of a kubeconfig")

// keyShape is what a key can look like that a message repeats.
var keyShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]{0,39}$`)

// onlyKnown refuses keys that are not among keysFromHost, and YAML with which a text could mean more than it says.
func onlyKnown(n *yaml.Node, path string) error {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		return errors.New("it has an alias, an anchor or a tag, which kubeadm does not write")
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			if err := onlyKnown(item, path); err != nil {
				return err
			}
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if !slices.Contains(keysFromHost[path], key) {
				if !keyShape.MatchString(key) {
					key = "that is no word"
				}
				return fmt.Errorf("it has the key %s in %s, which kubeadm does not write", key, cmp.Or(path, "its top"))
			}
			if err := onlyKnown(n.Content[i+1], strings.TrimPrefix(path+"."+key, ".")); err != nil {
				return err
			}
		}
	}
	return nil
}

// verified is the one way in that a file has, written anew.
func (f *file) verified() (*Access, error) {
	c, u := f.Clusters[0].Cluster, f.Users[0].User
	server, err := serverOf(c.Server)
	if err != nil {
		return nil, err
	}
	authority, err := certificatesOf("certificate-authority-data", c.CA)
	if err != nil {
		return nil, err
	}
	chain, err := certificatesOf("client-certificate-data", u.Certificate)
	if err != nil {
		return nil, err
	}
	if !leadsTo(chain, authority) {
		return nil, errors.New("its client-certificate-data was not signed by its certificate-authority-data")
	}
	a := &Access{Server: server, CA: encodeCertificates(authority), Certificate: encodeCertificates(chain)}
	if a.Key, err = privateKey(u.Key); err != nil {
		return nil, err
	}
	if _, err := tls.X509KeyPair(a.Certificate, a.Key); err != nil { // the error says no more than this
		return nil, errors.New("its client-key-data is not the key of its client-certificate-data")
	}
	return a, nil
}

// dnsName is a name as a server's address has it.
var dnsName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.?$`)

// serverOf is an address of the form https://HOST:PORT, put together anew of what it says.
func serverOf(text string) (string, error) {
	wrong := errors.New("its server is not an address of the form https://HOST:PORT")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", wrong
	}
	host := u.Hostname()
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return "", wrong
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		host = a.String()
	} else if len(host) > 253 || !dnsName.MatchString(host) {
		return "", wrong
	}
	return "https://" + net.JoinHostPort(host, strconv.FormatUint(port, 10)), nil
}

// ClientCertificate is a client certificate as a host sent it, PEM, written anew. An error says that it is none, has something
// beside it, or was signed by none of the authority's certificates, PEM as well.
func ClientCertificate(sent, authority []byte) ([]byte, error) {
	chain, err := certificates("certificate", sent)
	if err != nil {
		return nil, err
	}
	by, err := certificates("authority's certificate", authority)
	if err != nil {
		return nil, err
	}
	if !leadsTo(chain, by) {
		return nil, errors.New("the certificate was not signed by the cluster's authority")
	}
	return encodeCertificates(chain), nil
}

// certificatesOf is the certificates in the base64 of a PEM file, which has nothing else in it.
func certificatesOf(name, encoded string) ([]*x509.Certificate, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 {
		return nil, fmt.Errorf("there is no %s in it, or it is not base64", name)
	}
	return certificates(name, data)
}

// certificates is the certificates in a PEM file, which has nothing else in it, and one at least.
func certificates(name string, rest []byte) ([]*x509.Certificate, error) {
	wrong := fmt.Errorf("its %s is not a certificate", name)
	var out []*x509.Certificate
	for len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, wrong
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, wrong
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, wrong
	}
	return out, nil
}

func encodeCertificates(certs []*x509.Certificate) []byte {
	var out []byte
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// leadsTo reports whether the first of a chain was signed by one of an authority's certificates, perhaps by way of those that
// follow it. Times are not looked at: a certificate that has ended is no lie, and the API server says so.
func leadsTo(chain, authority []*x509.Certificate) bool {
	for i, c := range chain {
		if slices.ContainsFunc(authority, func(by *x509.Certificate) bool { return c.CheckSignatureFrom(by) == nil }) {
			return true
		}
		if i+1 == len(chain) || c.CheckSignatureFrom(chain[i+1]) != nil {
			return false
		}
	}
	return false
}

// privateKeys are the types of PEM blocks with a private key that is not encrypted.
var privateKeys = []string{"RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"}

// privateKey is the private key in the base64 of a PEM file, written anew. Whether it is one, tls.X509KeyPair says.
func privateKey(encoded string) ([]byte, error) {
	rest, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(rest) == 0 {
		return nil, errors.New("there is no client-key-data in it, or it is not base64")
	}
	if len(rest) > maxKey {
		return nil, fmt.Errorf("its client-key-data has %d bytes, more than %d", len(rest), maxKey)
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("its client-key-data is not a private key")
		}
		if slices.Contains(privateKeys, block.Type) { // openssl puts EC PARAMETERS before it
			return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}), nil
		}
	}
}

// NewRequest makes a key, and asks for a certificate that says whose it is; both PEM.
func NewRequest(user, group string) (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{group}},
	}, private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// UserCertificate reads what the cluster has signed: it must be the user's, for their key, and signed by the cluster's authority.
// It returns the certificate written anew, and its end.
func UserCertificate(sent, key, authority []byte, user string) (text []byte, end time.Time, err error) {
	if text, err = ClientCertificate(sent, authority); err != nil {
		return nil, end, err
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, end, err
	}
	if name := pair.Leaf.Subject.CommonName; name != user {
		return nil, end, fmt.Errorf("the certificate is %q's", name)
	}
	return text, pair.Leaf.NotAfter, nil
}
