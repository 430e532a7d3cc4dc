package facts

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// membership reads the kubelet's kubeconfig. The host sends certificates, never keys.
func membership(a answer, h *Host) error {
	server := a.first("kubelet-server")
	if server == "" {
		return nil
	}
	m := &Member{Server: server}
	var err error
	if ca := a.first("kubelet-ca"); ca != "" { // a half-written file may have none
		if m.CAHash, err = caHash(ca); err != nil {
			return bad("kubelet-ca", "…", err)
		}
	}
	var der []byte
	if encoded := a.first("kubelet-certificate-der"); encoded != "" {
		der, err = base64.StdEncoding.DecodeString(encoded)
	} else if encoded := a.first("kubelet-certificate"); encoded != "" {
		der, err = firstCertificate(encoded)
	}
	if err != nil {
		return bad("kubelet-certificate", "…", err)
	}
	if len(der) > 0 {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return bad("kubelet-certificate", "…", err)
		}
		m.NodeName = strings.TrimPrefix(cert.Subject.CommonName, "system:node:")
	}
	h.Kubelet = m
	h.NodeIP, _ = netip.ParseAddr(a.first("node-ip"))
	return nil
}

// caHash is kubeadm's discovery token hash, without its prefix, of the first certificate in base64-encoded PEM.
// Source: https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-join/.
func caHash(encoded string) (string, error) {
	cert, err := firstParsed(encoded)
	if err != nil {
		return "", err
	}
	return publicKeyHash(cert), nil
}

// CAHash is caHash of PEM that is not base64-encoded.
func CAHash(text []byte) (string, error) {
	return caHash(base64.StdEncoding.EncodeToString(text))
}

func firstParsed(encoded string) (*x509.Certificate, error) {
	der, err := firstCertificate(encoded)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func publicKeyHash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

func firstCertificate(encoded string) ([]byte, error) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
	return nil, errors.New("no certificate in it")
}

func controlPlane(a answer, h *Host) error {
	if !a.has("control-plane") {
		return nil
	}
	c := &ControlPlane{AdminConfSHA256: h.Files[adminConf], Finished: h.Recorded != nil && (h.Recorded.Init || h.Recorded.Plane) && h.Recorded.Done}
	delete(h.Files, adminConf) // this file is kubeadm's, not kgpu's
	if ca := a.first("cluster-ca"); ca != "" {
		cert, err := firstParsed(ca)
		if err != nil {
			return bad("cluster-ca", "…", err)
		}
		c.CAHash, c.Since = publicKeyHash(cert), cert.NotBefore
	}
	c.Endpoint = endpoint(a.first("control-plane-server"))
	c.flags(a["control-plane-flag"])
	c.Version, c.Etcd = tag(a.first("apiserver-image")), tag(a.first("etcd-image"))
	h.ControlPlane = c
	if !a.has("api") {
		return nil
	}
	var err error
	h.Cluster, err = cluster(a)
	return err
}

// tag is an image's, in a manifest; empty if it has none.
func tag(image string) string {
	i := strings.LastIndexByte(image, ':')
	if i < 0 {
		return ""
	}
	return strings.Trim(image[i+1:], `"'`)
}

// cluster reads the objects that the API server returned.
func cluster(a answer) (*Cluster, error) {
	c := &Cluster{Workloads: map[string]Workload{}}
	for _, line := range a["cluster"] {
		if err := c.object(strings.Split(line, "\t")); err != nil {
			return nil, bad("cluster", line, err)
		}
	}
	for _, line := range a["token"] {
		id, description, _ := strings.Cut(line, " ")
		if text, err := base64.StdEncoding.DecodeString(description); err == nil && strings.HasPrefix(string(text), "kgpu") {
			if name, err := base64.StdEncoding.DecodeString(id); err == nil {
				c.Tokens = append(c.Tokens, string(name))
			}
		}
	}
	return c, nil
}

// serverURL matches the API server URLs that kubeadm writes. The name is passed on to other hosts, so nothing else is
// accepted.
var serverURL = regexp.MustCompile(`^https://(([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*:[0-9]{1,5})$`)

// endpoint is the host:port of an API server's URL; empty if it is no such URL.
func endpoint(server string) string {
	m := serverURL.FindStringSubmatch(server)
	if m == nil {
		return ""
	}
	return m[1]
}

// names reads the addresses to which the host resolves the API server names.
func names(a answer, h *Host) error {
	for _, line := range a["resolved"] {
		name, rest, _ := strings.Cut(line, "=")
		at, err := netip.ParseAddr(firstWord(rest))
		if err != nil || slices.Contains(h.Names[name], at) {
			continue // getent prints a line for each type of socket
		}
		put(&h.Names, name, append(h.Names[name], at))
	}
	return nil
}

// ResolvConfs are the files that may have a host's name servers: the one that programs read, and those with the
// upstream servers of a resolver that listens at a loopback address.
var ResolvConfs = []string{
	"/etc/resolv.conf", SystemdResolvConf, "/run/NetworkManager/no-stub-resolv.conf", "/run/dnsmasq/resolv.conf",
}

// SystemdResolvConf is the file of systemd-resolved.
const SystemdResolvConf = "/run/systemd/resolve/resolv.conf"

// resolvers reads lines with a file and its servers.
func resolvers(a answer, h *Host) error {
	for _, line := range a["resolv-conf"] {
		words := strings.Fields(line)
		if len(words) == 0 || !slices.Contains(ResolvConfs, words[0]) {
			continue
		}
		servers := []netip.Addr{}
		for _, word := range words[1:] {
			if at, err := netip.ParseAddr(word); err == nil {
				servers = append(servers, at.Unmap())
			}
		}
		put(&h.Resolvers, words[0], servers)
	}
	return nil
}

const adminConf = "/etc/kubernetes/admin.conf"

// object parses a line of facts.sh's template for kubectl.
func (c *Cluster) object(f []string) error {
	if len(f) < 5 {
		return errors.New("too few fields")
	}
	if f[0] == "node" {
		n, ok := ParseNode(f)
		if !ok {
			return errors.New("no name")
		}
		c.Nodes = append(c.Nodes, n)
		return nil
	}
	w := Workload{}
	var err error
	if w.Desired, err = count(f[3]); err != nil {
		return err
	}
	if w.Ready, err = count(f[4]); err != nil {
		return err
	}
	if len(f) > 5 && f[5] != noValue {
		w.Hash = f[5]
	}
	w.Bridge = len(f) > 6 && f[6] == "bridge"
	c.Workloads[f[1]+"/"+f[0]+"/"+f[2]] = w
	return nil
}

// noValue is what Go's templates print for a missing field.
const noValue = "<no value>"

func count(s string) (int, error) {
	if s == noValue || s == "" {
		return 0, nil
	}
	return strconv.Atoi(s)
}

// currentRun reads what facts.sh found of a batch that is still running.
func currentRun(a answer, h *Host) error {
	batch := a.first("run")
	if batch == "" {
		return nil
	}
	r := &Run{ID: batch, Unit: "kgpu-" + batch + ".service", Step: a.first("run-step"), By: a.first("run-by")}
	if a.first("run-since-ms") != "" {
		ms, err := a.number("run-since-ms", false)
		if err != nil {
			return err
		}
		r.Since = time.UnixMilli(ms)
	}
	h.Run = r
	return nil
}
