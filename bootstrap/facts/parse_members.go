package facts

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// record reads the ledger's entries of the membership, such as "kubeadm=join", "kubeadm=join-done UID" or
// "adopted=worker UID", and the CA certificate that it kept.
func record(a answer, h *Host) error {
	if !a.has("kubeadm") && !a.has("adopted") {
		return nil
	}
	r := &Record{Adopted: a.has("adopted")}
	for _, line := range a["kubeadm"] {
		what, uid, _ := strings.Cut(line, " ")
		switch what {
		case "init", "init-done":
			r.Init = true
		case "join", "join-done":
			r.Join = true
		case "join-plane", "join-plane-done":
			r.Join, r.Plane = true, true
		}
		if strings.HasSuffix(what, "-done") {
			r.Done, r.UID = true, uid
		}
	}
	for _, line := range a["adopted"] {
		_, r.UID, _ = strings.Cut(line, " ")
	}
	if list := a["recorded-ca"]; len(list) > 0 {
		hash, err := caHash(list[len(list)-1])
		if err != nil {
			return bad("recorded-ca", "…", err)
		}
		r.CAHash = hash
	}
	h.Recorded = r
	return nil
}

// etcdData reads "KIB SECONDS": the size of etcd's data directory, empty if measuring took too long, and the time of
// its last write.
func etcdData(a answer, h *Host) error {
	line := a.first("etcd-data")
	if line == "" {
		return nil
	}
	size, changed, _ := strings.Cut(line, " ")
	var kib int64
	var err error
	if size != "" {
		if kib, err = strconv.ParseInt(size, 10, 64); err != nil {
			return bad("etcd-data", line, err)
		}
	}
	seconds, err := strconv.ParseInt(changed, 10, 64)
	if err != nil {
		return bad("etcd-data", line, err)
	}
	h.Etcd = &EtcdData{KiB: kib, Changed: time.Unix(seconds, 0)}
	return nil
}

// podLink matches the names of the links that weave, flannel, calico and kube-proxy make on a host, not those of single
// pods.
var podLink = regexp.MustCompile(`^(cni0|flannel(-v6)?\.[0-9]+|weave|datapath|vethwe-bridge|vxlan-6784|vxlan(-v6)?\.calico|kube-ipvs0)$`)

// podLinks finds those links in lines of `ip -o link`.
func podLinks(lines []string) []string {
	var found []string
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(f[1], ":"), "@")
		if podLink.MatchString(name) {
			found = append(found, name)
		}
	}
	return found
}

// flags reads the flags in the control plane's static pod manifests.
func (c *ControlPlane) flags(lines []string) {
	fields := map[string]*string{
		"advertise-address": &c.Advertised, "cluster-cidr": &c.PodCIDR, "cluster-name": &c.Name, "service-cluster-ip-range": &c.ServiceCIDR,
		"enable-admission-plugins": &c.Defences.Plugins, "admission-control-config-file": &c.Defences.Admission,
		"audit-log-path": &c.Defences.AuditLog, "encryption-provider-config": &c.Defences.Encryption,
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		if field := fields[name]; field != nil {
			*field = value
		}
		if name == "initial-cluster" {
			for _, member := range strings.Split(value, ",") {
				member, _, _ = strings.Cut(member, "=")
				c.EtcdMembers = append(c.EtcdMembers, member)
			}
		}
	}
}

// LockHolder is the run of kgpu that holds the cluster's lock on a control plane.
type LockHolder struct {
	Who     string    // user@machine; empty if it has not written it yet
	From    string    // the address it connects from; empty if unknown
	Since   time.Time // by the host's clock; zero if unknown
	Command string    // such as "up inventory.yaml"
	Run     string    // ID of the run
}

// ParseLockHolder reads lines such as who=ada@laptop, as the holder wrote them, and skips unknown keys.
func ParseLockHolder(lines []string) (*LockHolder, error) {
	o := &LockHolder{}
	fields := map[string]*string{"who": &o.Who, "from": &o.From, "command": &o.Command, "run": &o.Run}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		value = printable.Line(value)
		if field := fields[key]; field != nil {
			*field = value
		}
		if key == "since" {
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, bad("operator", line, err)
			}
			o.Since = time.Unix(seconds, 0)
		}
	}
	return o, nil
}

// Describe tells a person who it is, from where, since when and what it does. now is the host's clock.
func (o *LockHolder) Describe(now time.Time) string {
	text := cmp.Or(o.Who, "somebody")
	if o.From != "" {
		text += " from " + o.From
	}
	if !o.Since.IsZero() {
		text += " since " + o.Since.UTC().Format("2006-01-02 15:04:05 UTC") + " (" + max(now.Sub(o.Since), 0).Truncate(time.Second).String() + " ago)"
	}
	if o.Command != "" {
		text += ", doing `kgpu " + o.Command + "`"
	}
	return text
}

// lockHolder reads what facts.sh found of the lock's holder.
func lockHolder(a answer, h *Host) error {
	if !a.has("operator") {
		return nil
	}
	var err error
	h.LockHolder, err = ParseLockHolder(a["operator"])
	return err
}

// backups reads seconds of the host's clock, and what they are of.
func backups(a answer, h *Host) error {
	since, err := a.number("backup-since", true)
	if err != nil || since == 0 {
		return err
	}
	b := &Backups{Since: time.Unix(since, 0), Gone: a.has("backup-gone")}
	b.Good, b.Archive = momentOf(a.first("backup-good"))
	b.Failed, b.Why = momentOf(a.first("backup-failed"))
	if b.Why == "" && a.has("backup-unit-failed") {
		b.Why = "kgpu-backup.service failed"
	}
	h.Backups = b
	return nil
}

// momentOf reads seconds, and after a tab what they are of; zero if it cannot be read.
func momentOf(line string) (time.Time, string) {
	seconds, what, _ := strings.Cut(line, "\t")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, ""
	}
	return time.Unix(s, 0), what
}

// restoreToken is what the token of an etcd looks like that a restore made.
var restoreToken = regexp.MustCompile(`^kgpu-[0-9a-f]{16}-[0-9a-f]{16}$`)

// restoring reads "SUM begun", or "SUM restored TOKEN PEERS".
func restoring(a answer, h *Host) error {
	words := strings.Fields(a.first("restore"))
	if len(words) < 2 {
		return nil
	}
	r := &Restoring{Archive: words[0], Done: words[1] == "restored"}
	if r.Done && len(words) == 4 && restoreToken.MatchString(words[2]) {
		r.Token, r.Peers = words[2], words[3]
	}
	h.Restoring = r
	return nil
}
