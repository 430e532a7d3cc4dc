package kubeconfig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"
)

// parts are what a kubeconfig of kubeadm has in it.
type parts struct {
	ca, cert []byte // DER
	key      *pem.Block
	signer   crypto.Signer // of the authority
}

func newKey(t *testing.T, kind string) (crypto.Signer, *pem.Block) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ec":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	must(t, err)
	block := &pem.Block{Type: "PRIVATE KEY"}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		block = &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}
	case *ecdsa.PrivateKey:
		block.Type = "EC PRIVATE KEY"
		block.Bytes, err = x509.MarshalECPrivateKey(k)
	default:
		block.Bytes, err = x509.MarshalPKCS8PrivateKey(k)
	}
	must(t, err)
	return key, block
}

// issued is a certificate of subject for key, signed by another certificate; parent nil: by itself.
func issued(t *testing.T, subject string, isCA bool, key crypto.Signer, parent []byte, by crypto.Signer) []byte {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: subject}, NotBefore: time.Now().AddDate(-2, 0, 0), NotAfter: time.Now().AddDate(-1, 0, 0), IsCA: isCA, BasicConstraintsValid: true}
	signer := c
	if parent != nil {
		var err error
		if signer, err = x509.ParseCertificate(parent); err != nil {
			t.Fatal(err)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, key.Public(), by)
	must(t, err)
	return der
}

func newParts(t *testing.T, kind string) parts {
	t.Helper()
	authority, _ := newKey(t, kind)
	key, block := newKey(t, kind)
	ca := issued(t, "kubernetes", true, authority, nil, authority)
	return parts{ca, issued(t, "kubernetes-admin", false, key, ca, authority), block, authority}
}

func certPEM(ders ...[]byte) string {
	var b strings.Builder
	for _, der := range ders {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return b.String()
}

// conf is the file, written as the template says, which has CA, CERT and KEY in it.
func conf(template, ca, cert, key string) []byte {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return []byte(strings.NewReplacer("CA", b64(ca), "CERT", b64(cert), "KEY", b64(key)).Replace(template))
}

func (p parts) conf(template string) []byte {
	return conf(template, certPEM(p.ca), certPEM(p.cert), string(pem.EncodeToMemory(p.key)))
}

// What kubeadm writes.
const modern = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: CA
    server: https://10.0.0.10:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: kubernetes-admin
  name: kubernetes-admin@kubernetes
current-context: kubernetes-admin@kubernetes
kind: Config
preferences: {}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: CERT
    client-key-data: KEY
`

// What kubeadm of every version writes is taken, with the keys of every kind, as it is; also where an administrator chose a
// namespace, or let the authority be a bundle.
func TestFromHost(t *testing.T) {
	for _, kind := range []string{"rsa", "ec", "ed25519"} {
		p := newParts(t, kind)
		for name, template := range map[string]string{
			"modern":         modern,
			"no preferences": strings.Replace(modern, "preferences: {}\n", "", 1),
			"1.8":            strings.Replace(modern, "  user:\n    client-c", "  user:\n    as-user-extra: {}\n    client-c", 1),
			"a namespace":    strings.Replace(modern, "    user: kubernetes-admin\n", "    namespace: mine\n    user: kubernetes-admin\n", 1),
			"JSON":           `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.10:6443", "certificate-authority-data": "CA"}}], "users": [{"name": "u", "user": {"client-certificate-data": "CERT", "client-key-data": "KEY"}}]}`,
		} {
			a, err := FromHost(p.conf(template))
			if err != nil {
				t.Errorf("%s, %s: %v", kind, name, err)
				continue
			}
			if a.Server != "https://10.0.0.10:6443" || string(a.CA) != certPEM(p.ca) || string(a.Certificate) != certPEM(p.cert) || !bytes.Equal(a.Key, pem.EncodeToMemory(p.key)) || a.Cluster+a.User+a.Context+a.Namespace+a.TLSServerName != "" {
				t.Errorf("%s, %s: it became %+v", kind, name, a)
			}
		}
	}
	p := newParts(t, "ec")
	key := string(pem.EncodeToMemory(p.key))
	middle, _ := newKey(t, "ec")
	between := issued(t, "between", true, middle, p.ca, p.signer)
	private, block := newKey(t, "ec")
	leaf := issued(t, "kubernetes-admin", false, private, between, middle)
	for name, c := range map[string][]byte{
		"a bundle":        conf(modern, certPEM(newParts(t, "ec").ca, p.ca), certPEM(p.cert), key),
		"an intermediate": conf(modern, certPEM(p.ca), certPEM(leaf, between), string(pem.EncodeToMemory(block))),
		"parameters":      conf(modern, certPEM(p.ca), certPEM(p.cert), "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"+key),
		"words around":    conf(modern, certPEM(p.ca), "subject=admin\n"+certPEM(p.cert), "a key:\n"+key+"evil"),
	} {
		a, err := FromHost(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(string(a.CA)+string(a.Certificate)+string(a.Key), "evil") || bytes.Contains(a.Key, []byte("PARAMETERS")) {
			t.Errorf("%s: it is passed on as it came: %+v", name, a)
		}
	}
	for server, want := range map[string]string{
		"https://api.example.com:443": "", "https://lb:6443": "", "'https://[2001:db8::1]:6443'": "https://[2001:db8::1]:6443", "https://10.0.0.10:06443": "https://10.0.0.10:6443",
	} {
		a, err := FromHost(p.conf(strings.Replace(modern, "https://10.0.0.10:6443", server, 1)))
		if want == "" {
			want = server
		}
		if err != nil || a.Server != want {
			t.Errorf("%s: %+v, %v", server, a, err)
		}
	}
}

func TestFromHostRefuses(t *testing.T) {
	p, other := newParts(t, "ec"), newParts(t, "ec")
	ca, cert, key := certPEM(p.ca), certPEM(p.cert), string(pem.EncodeToMemory(p.key))
	with := func(old, is string) []byte { return p.conf(strings.Replace(modern, old, is, 1)) }
	in := func(path, more string) []byte { return with("    "+path+": ", "    "+more+"\n    "+path+": ") }
	refused := map[string]struct {
		conf []byte
		want string
	}{
		"nothing":             {nil, "not the YAML"},
		"null":                {[]byte("null\n"), "not the YAML"},
		"no YAML":             {[]byte("users: [THE-KEY\n"), "not the YAML"},
		"another kind":        {with("kind: Config", "kind: Secret"), "not the YAML"},
		"two documents":       {append(p.conf(modern), "---\na: b\n"...), "something follows"},
		"a key twice":         {in("client-key-data", "client-key-data: x"), "not the YAML"},
		"two users":           {with("users:\n", "users:\n- name: x\n  user: {}\n"), "1 clusters and 2 users"},
		"exec":                {in("client-key-data", "exec: {command: sh}"), "the key exec in users.user"},
		"an empty exec":       {in("client-key-data", "exec:"), "the key exec in users.user"},
		"tokenFile":           {in("client-key-data", "tokenFile: /x"), "the key tokenFile in users.user"},
		"a user's extra":      {in("client-key-data", "as-user-extra: {scope: [x]}"), "the key scope in users.user.as-user-extra"},
		"proxy-url":           {in("server", "proxy-url: http://x"), "the key proxy-url in clusters.cluster"},
		"insecure":            {in("server", "insecure-skip-tls-verify: true"), "the key insecure-skip-tls-verify in clusters.cluster"},
		"preferences":         {with("preferences: {}", "preferences: {colors: true}"), "the key colors in preferences"},
		"at the top":          {with("preferences: {}", "extensions: []"), "the key extensions in its top"},
		"a mapping as a name": {with("name: kubernetes\n", "name: {a: b}\n"), "the key a in clusters.name"},
		"merge":               {in("client-key-data", "<<: {exec: {}}"), "the key that is no word"},
		"a secret as a key":   {in("client-key-data", base64.StdEncoding.EncodeToString([]byte(key))[:80]+": x"), "the key that is no word"},
		"escapes":             {in("client-key-data", `"\e]0;evil\a": x`), "the key that is no word"},
		"an anchor":           {with("preferences: {}", "preferences: &a {}"), "an alias, an anchor or a tag"},
		"a tag":               {with("client-key-data: ", "client-key-data: !!binary "), "an alias, an anchor or a tag"},
		"no authority":        {conf(modern, "", cert, key), "no certificate-authority-data"},
		"an authority's name": {conf(modern, "/etc/ca.crt", cert, key), "its certificate-authority-data is not a certificate"},
		"not base64":          {with("CERT", "x.y"), "no client-certificate-data"},
		"no certificate":      {conf(modern, ca, " \n", key), "its client-certificate-data is not a certificate"},
		"rubbish after one":   {conf(modern, ca, cert+"evil", key), "its client-certificate-data is not a certificate"},
		"a key for one":       {conf(modern, ca, key, key), "its client-certificate-data is not a certificate"},
		"another's":           {conf(modern, certPEM(other.ca), cert, key), "was not signed by its"},
		"no key":              {conf(modern, ca, cert, cert), "not a private key"},
		"another key":         {conf(modern, ca, cert, string(pem.EncodeToMemory(other.key))), "not the key of its"},
		"a key that is long":  {conf(modern, ca, cert, key+strings.Repeat("x", maxKey)), "its client-key-data has"},
		"a file that is long": {append(p.conf(modern), strings.Repeat("# \n", MaxFromHost/3)...), "more than"},
	}
	for _, server := range []string{
		"http://10.0.0.10:6443", "https://10.0.0.10", "https://10.0.0.10:0", "https://10.0.0.10:65536", "https://:6443", "https://10.0.0.10:6443/", "https://u:p@10.0.0.10:6443", "https://10.0.0.10:6443?a",
		"https://10.0.0.10:6443#a", "https://a_b:6443", "https://-a:6443", "'https://[fe80::1%25eth0]:6443'", "unix:///run/x", "''", "https://" + strings.Repeat("a.", 127) + "b:6443",
	} {
		refused["the server "+server] = struct {
			conf []byte
			want string
		}{with("https://10.0.0.10:6443", server), "its server is not an address"}
	}
	for name, c := range refused {
		a, err := FromHost(c.conf)
		if a != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if text := fmt.Sprint(err); strings.Contains(text, "THE-KEY") || strings.Contains(text, "evil") || strings.ContainsAny(text, "\x1b\x07\n") || len(text) > 200 {
			t.Errorf("%s: the error is %q", name, text)
		}
	}
}

// A megabyte that would become 80 gigabytes with its aliases written out costs nothing, and as much as may come costs some
// megabytes.
func TestFromHostAllocatesLittle(t *testing.T) {
	bomb := "a: &a [" + strings.Repeat("x,", 1<<18) + "x]\nb: &b [" + strings.Repeat("*a,", 1<<17) + "*a]\nusers: [{user: {c: *b}}]\nclusters: [{}]\n"
	small := "a: &a [" + strings.Repeat("x,", MaxFromHost/8) + "x]\nb: &b [" + strings.Repeat("*a,", MaxFromHost/8) + "*a]\n"
	for name, c := range map[string]struct {
		conf string
		most uint64
	}{
		"a bomb": {bomb, 1 << 20}, "a small bomb": {small, 32 << 20}, "deep": {strings.Repeat("[", MaxFromHost), 32 << 20}, "scalars": {"[" + strings.Repeat("a,", MaxFromHost/2-1) + "]", 32 << 20},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := FromHost([]byte(c.conf)); err == nil {
			t.Errorf("%s was taken", name)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > c.most {
			t.Errorf("%s: %d bytes were allocated, more than %d", name, got, c.most)
		}
	}
}
