package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// oneOf parses a word from a fixed list.
func oneOf[T ~string](allowed ...T) func(string) (T, error) {
	return func(s string) (T, error) {
		if slices.Contains(allowed, T(s)) {
			return T(s), nil
		}
		names := make([]string, len(allowed))
		for i, a := range allowed {
			names[i] = string(a)
		}
		return "", hint{fmt.Sprintf("%q is not one of %s", s, strings.Join(names, ", ")), nearest.Word(s, names)}
	}
}

// matching takes a text that the expression matches as it is. message quotes another one, and says what it is not.
func matching(expression *regexp.Regexp, message string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !expression.MatchString(s) {
			return "", fmt.Errorf(message, shown(s))
		}
		return s, nil
	}
}

// Names as RFC 1123 and Kubernetes have them: kubernetes.io/docs/concepts/overview/working-with-objects/names.
var (
	labelExpression     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	subdomainExpression = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

const (
	maxLabel     = 63
	maxSubdomain = 253
)

func rfc1123Label(s string) (string, error) {
	if len(s) > maxLabel || !labelExpression.MatchString(s) {
		return "", hint{fmt.Sprintf("%q is not a name: at most %d lower-case letters, digits and hyphens, with a letter or digit at both ends", s, maxLabel), tidyName(s)}
	}
	return s, nil
}

// nodeName is a subdomain that also fits the label kubernetes.io/hostname.
func nodeName(s string) (string, error) {
	if len(s) > maxLabel || !subdomainExpression.MatchString(s) {
		return "", hint{fmt.Sprintf("%q is not a node name: at most %d lower-case letters, digits, hyphens and dots, with a letter or digit at both ends of each part", s, maxLabel), tidyName(s)}
	}
	return s, nil
}

// tidyName is the name that s nearly is.
func tidyName(s string) string {
	if t := strings.ReplaceAll(strings.ToLower(s), "_", "-"); t != s && len(t) <= maxLabel && subdomainExpression.MatchString(t) {
		return t
	}
	return ""
}

var hostNameExpression = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*\.?$`)

// address is an IP address or a DNS name.
func address(s string) (string, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return s, usable(ip)
	}
	_, port, _ := net.SplitHostPort(s)
	switch _, err := strconv.ParseUint(port, 10, 16); {
	case strings.Contains(s, "@"): // and perhaps a password
		return "", errors.New("is only the address: the user goes to `ssh: {user: …}`")
	case len(s) > maxSubdomain:
		return "", errors.New("a DNS name has at most 253 characters")
	case looksLikeIPv4.MatchString(s):
		return "", fmt.Errorf("%q is not an IP address", s)
	case hostNameExpression.MatchString(s):
		return s, nil
	case err == nil:
		return "", fmt.Errorf("%q: the port goes to `ssh: {port: %s}`", s, port)
	}
	return "", fmt.Errorf("%q is neither an IP address nor a DNS name", s)
}

var looksLikeIPv4 = regexp.MustCompile(`^[0-9.]+$`)

// ipAddress is the address of a node inside the cluster.
func ipAddress(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	if err := usable(ip); err != nil {
		return netip.Addr{}, err
	}
	if !ip.Is4() {
		return netip.Addr{}, fmt.Errorf("%s is an IPv6 address: kgpu makes IPv4 clusters for now", ip)
	}
	return ip, nil
}

// usable reports why a machine cannot have an address.
func usable(ip netip.Addr) error {
	switch {
	case ip.Zone() != "":
		return fmt.Errorf("%s has a zone: use an address that is valid beyond one link", ip)
	case ip.IsUnspecified(), ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%s is not the address of a machine", ip)
	}
	return nil
}

// cidr is a range of addresses with nothing behind the mask.
func cidr(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	switch {
	case strings.Contains(s, ","):
		return netip.Prefix{}, errors.New("two ranges: kgpu makes IPv4 clusters for now, give one")
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not a range of addresses such as 10.244.0.0/16", s)
	case !p.Addr().Is4():
		return netip.Prefix{}, fmt.Errorf("%s is an IPv6 range: kgpu makes IPv4 clusters for now", s)
	case p != p.Masked():
		return netip.Prefix{}, hint{fmt.Sprintf("%s has address bits behind the mask", s), p.Masked().String()}
	}
	return p, nil
}

// defaultAPIPort is where an API server listens: kubernetes.io/docs/reference/networking/ports-and-protocols.
const defaultAPIPort = "6443"

// endpoint is host:port; the port may be left out.
func endpoint(s string) (string, error) {
	if _, bare, ok := strings.Cut(s, "://"); ok {
		return "", hint{"an endpoint is written without a scheme", withoutUser(bare)}
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = s, defaultAPIPort
		if inside, ok := strings.CutPrefix(s, "["); ok {
			host = strings.TrimSuffix(inside, "]")
		}
	}
	if _, err := address(host); err != nil {
		return "", fmt.Errorf("%s is not host:port, such as k8s.example.com:%s", shown(s), defaultAPIPort)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%s: the port must be a number from 1 to 65535", shown(s))
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), port), nil
}

// urlExpression are the characters of a URL, less the quote and the braces and brackets that curl makes several of one by.
// Source: RFC 3986, 2.
var urlExpression = regexp.MustCompile(`^[-A-Za-z0-9._~:/?#@!$&()*+,;=%]*(\[[0-9A-Fa-f:.]*\])?[-A-Za-z0-9._~:/?#@!$&()*+,;=%]*$`)

// httpURL is the address of a server. It holds no password: it ends up in files that everybody may read.
func httpURL(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case strings.Contains(authority(s), "@"):
		return "", errors.New("must not hold a user name or password")
	case err != nil:
		return "", errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("%q is not a URL that begins with http:// or https://", s)
	case !urlExpression.MatchString(s):
		return "", fmt.Errorf("%q has characters that a URL must not have", s)
	}
	return strings.TrimSuffix(s, "/"), nil
}

// authority is the part of a URL that names the server, with or without a scheme in front of it.
func authority(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	return s
}

// shown quotes a value for a message, unless it may hold a password.
func shown(s string) string {
	if strings.Contains(s, "@") {
		return "the value"
	}
	return strconv.Quote(s)
}

func withoutUser(s string) string {
	if strings.Contains(s, "@") {
		return ""
	}
	return s
}

var (
	fingerprintExpression = regexp.MustCompile(`^[0-9A-F]{40}$`)
	sha256Expression      = regexp.MustCompile(`^[0-9a-f]{64}$`)
	registryExpression    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// driverBranch is the number of a release branch of NVIDIA's driver.
func driverBranch(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if _, ok := catalog.LookupDriverBranch(n); err == nil && ok {
		return n, nil
	}
	return 0, fmt.Errorf("%q is not one of the driver branches %s", s, strings.Trim(fmt.Sprint(catalog.DriverBranches()), "[]"))
}

// cudaVersion is that of a toolkit, or the word for none.
func cudaVersion(s string) (string, error) {
	if _, ok := catalog.LookupCUDA(s); ok || s == catalog.NoCUDA {
		return s, nil
	}
	known := []string{catalog.NoCUDA}
	for _, c := range catalog.CUDAToolkits() {
		known = append(known, c.Version)
	}
	return "", hint{fmt.Sprintf("%q is not one of %s", s, strings.Join(known, ", ")), cmp.Or(catalog.NearestCUDA(s), nearest.Word(s, known))}
}

func fingerprint(s string) (string, error) {
	f := strings.ToUpper(strings.ReplaceAll(s, " ", ""))
	if !fingerprintExpression.MatchString(f) {
		return "", fmt.Errorf("%q is not the fingerprint of a key: 40 hexadecimal digits, as `gpg --show-keys --fingerprint` prints them", s)
	}
	return f, nil
}

func sha256Sum(s string) (string, error) {
	sum := strings.ToLower(s)
	if !sha256Expression.MatchString(sum) {
		return "", fmt.Errorf("%q is not a SHA-256 sum: 64 hexadecimal digits, as `sha256sum` prints them", s)
	}
	return sum, nil
}

// registry is a host with an optional port and path, as it stands in front of an image's name.
func registry(s string) (string, error) {
	if bare, ok := strings.CutPrefix(s, "https://"); ok {
		return "", hint{"a registry is written without https://", withoutUser(bare)}
	}
	if s = strings.TrimSuffix(s, "/"); !registryExpression.MatchString(s) {
		return "", fmt.Errorf("%s is not a registry such as registry.example.com:5000/mirror", shown(s))
	}
	return s, nil
}

// userName is who logs in, as the systems name users, of directories too. It stands in commands that people copy.
var userName = matching(regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_.@+]*[$]?$`), "%s is not the name of a user")

// word is a piece of text without blanks, and no option.
func word(s string) (string, error) {
	if s == "" || s[0] == '-' || strings.ContainsAny(s, " \t\r\n,\"'\\`") || s != printable.Line(s) {
		return "", fmt.Errorf("%q is not one word", s)
	}
	return s, nil
}

// reasonID is the ID of a preflight check.
func reasonID(s string) (string, error) {
	if reason.Known(reason.ID(s)) {
		return s, nil
	}
	var known []string
	for _, r := range reason.Table() {
		known = append(known, string(r.ID))
	}
	return "", hint{fmt.Sprintf("no check has the ID %q", s), nearest.Word(s, known)}
}

// hostKey is a public key as known_hosts and authorized_keys write it, without options.
func hostKey(s string) (string, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(s))
	if err != nil || len(options) > 0 || len(rest) > 0 {
		return "", errors.New("is not a public key such as `ssh-ed25519 AAAA…`: take the machine's /etc/ssh/ssh_host_ed25519_key.pub")
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// Labels and taints as kubernetes.io/docs/concepts/overview/working-with-objects/labels has them: an optional DNS prefix and
// a slash, then a name; name and value of at most 63 characters.
var qualifiedName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

func checkLabelKey(key string) error {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	if found && (len(prefix) > maxSubdomain || !subdomainExpression.MatchString(prefix)) {
		return fmt.Errorf("%q: %q in front of the slash is not a DNS name in lower case", key, prefix)
	}
	if len(name) > maxLabel || !qualifiedName.MatchString(name) {
		return fmt.Errorf("%q is not a label's key: at most %d letters, digits and -_. with a letter or digit at both ends", key, maxLabel)
	}
	return nil
}

func labelValue(s string) (string, error) {
	if s != "" && (len(s) > maxLabel || !qualifiedName.MatchString(s)) {
		return "", fmt.Errorf("%q is not a label's value: at most %d letters, digits and -_. with a letter or digit at both ends", s, maxLabel)
	}
	return s, nil
}

// taint reads key=value:Effect or key:Effect.
func taint(s string) (Taint, error) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return Taint{}, fmt.Errorf("%q is not key=value:Effect or key:Effect", s)
	}
	effect, err := oneOf("NoSchedule", "PreferNoSchedule", "NoExecute")(s[at+1:])
	if err != nil {
		return Taint{}, err
	}
	key, value, _ := strings.Cut(s[:at], "=")
	if err := checkLabelKey(key); err != nil {
		return Taint{}, err
	}
	if value, err = labelValue(value); err != nil {
		return Taint{}, err
	}
	return Taint{key, value, effect}, nil
}
