package inventory

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Draft is an inventory that is written for the first time, with what a person wants to know of it as comments.
type Draft struct {
	Head        []string // paragraphs above everything
	Cluster     string
	Version     string       // minor version of Kubernetes
	PodCIDR     netip.Prefix // zero: the default
	ServiceCIDR netip.Prefix // zero: the default
	RangesNote  string       // why they are not the defaults
	Network     Network
	Runtime     Runtime
	Why         string // these two
	SSH         DraftSSH
	Hosts       []DraftHost
}

// DraftSSH is what holds for every host. Empty fields are left out.
type DraftSSH struct {
	User, Key    string
	Port         int
	SudoPassword string // a reference: ${NAME} or file:PATH
}

// DraftHost is one machine. Empty fields are left out.
type DraftHost struct {
	Address, Name  string
	PrivateAddress netip.Addr
	PrivateNote    string // in one line: what network that is in
	Role           Role
	User           string // where it is not that of all hosts
	Port           int    // the same
	HostKey        string // pinned, as in authorized_keys
	HostKeyNote    string // how it came to be trusted
	Notes          []string
	Left           bool // the entry is a comment
}

// maxColumn is where comments end.
const maxColumn = 120

// Text is the draft as a file. A setting that is a comment has its default value. Notes may hold what hosts say: they come
// out as comments, whatever is in them.
func (d Draft) Text() []byte {
	p := &page{}
	for _, paragraph := range d.Head {
		p.comment("# ", paragraph)
	}
	p.line("")
	p.line("cluster: %s # also in the name of the kubeconfig", valueText(d.Cluster))
	p.line("")
	p.line("kubernetes:")
	p.line("  version: %q # a new cluster gets the newest patch that its hosts' repositories have, and keeps it", d.Version)
	p.comment("  # ", d.RangesNote)
	p.cidr("podCIDR", d.PodCIDR, newFile("").Kubernetes.PodCIDR, "addresses of pods")
	p.cidr("serviceCIDR", d.ServiceCIDR, newFile("").Kubernetes.ServiceCIDR, "addresses of services")
	p.line("")
	p.comment("# ", d.Why)
	p.line("network: %s # or %s (bring your own)", d.Network, others(d.Network, Weave, Flannel, Calico, None))
	p.line("runtime: %s # or %s", d.Runtime, others(d.Runtime, Docker, Containerd))
	p.line("")
	p.line("# What is commented out below has this value by default. Every setting there is: `kgpu schema`, or examples/full.yaml.")
	p.line("# swap: %s # or disable: kgpu turns swap off on every host, `kgpu reset` turns it on again", SwapRefuse)
	p.line("# gpu: # kgpu chooses the driver for each host's cards; `driver` overrides that")
	p.line("#   cudnn: true # with the CUDA toolkit, 10 GB on hosts with cards; `cuda: none` does without both: pods bring their own")
	p.line("# notebook: {} # Jupyter with one card: the proof at the end opens it and computes on the card")
	p.line("#   # kgpu takes the framework that computes on your cards; `framework: %s` does without the notebook", catalog.NoFramework)
	p.line("")
	d.SSH.write(p)
	p.line("")
	p.line("hosts:")
	for i, h := range d.Hosts {
		if i > 0 {
			p.line("")
		}
		h.write(p)
	}
	return []byte(p.String())
}

// others are the values that a setting could have as well.
func others[T ~string](chosen T, all ...T) string {
	var out []string
	for _, value := range all {
		if value != chosen {
			out = append(out, string(value))
		}
	}
	return strings.Join(out, ", ")
}

func (s DraftSSH) write(p *page) {
	p.line("ssh: # for every host; a host's own `ssh` overrides it key by key")
	if s.User != "" {
		p.line("  user: %s # root, or a user with sudo", valueText(s.User))
	} else {
		p.line("  # user: root # or a user with sudo")
	}
	if s.Port != 0 {
		p.line("  port: %d", s.Port)
	} else {
		p.line("  # port: 22")
	}
	if s.Key != "" {
		p.line("  key: %s", valueText(literal(s.Key)))
	} else {
		p.line("  # No `key` is named: the agent's keys are tried, then the usual ones in ~/.ssh.")
	}
	if s.SudoPassword != "" {
		p.line("  sudoPassword: %s # where the password is: it never stands here", valueText(s.SudoPassword))
	} else {
		p.line("  # No `sudoPassword` (a reference, ${NAME} or file:PATH) is named: sudo must not ask for one.")
	}
	p.line("  # hostKeyPolicy: %s # or accept-new: unknown hosts are added to known_hosts, changed keys are refused", Strict)
}

func (h DraftHost) write(p *page) {
	for _, n := range h.Notes {
		p.comment("  # ", n)
	}
	lead := "  "
	if h.Left {
		lead = "  # "
	}
	p.line("%s- address: %s", lead, valueText(h.Address))
	lead += "  "
	if h.Name != "" {
		p.line("%sname: %s", lead, valueText(h.Name))
	}
	if h.PrivateAddress.IsValid() {
		p.line("%sprivateAddress: %s # %s", lead, h.PrivateAddress, forComment(h.PrivateNote))
	}
	p.line("%srole: %s", lead, h.Role)
	if h.User == "" && h.Port == 0 && h.HostKey == "" {
		return
	}
	p.line("%sssh:", lead)
	if h.User != "" {
		p.line("%s  user: %s", lead, valueText(h.User))
	}
	if h.Port != 0 {
		p.line("%s  port: %d", lead, h.Port)
	}
	if h.HostKey != "" {
		p.comment(lead+"  # ", h.HostKeyNote)
		p.line("%s  hostKey: %s", lead, valueText(h.HostKey))
	}
}

// page is the text of a draft while it is written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

func (p *page) cidr(key string, chosen, otherwise netip.Prefix, note string) {
	if chosen.IsValid() && chosen != otherwise {
		p.line("  %s: %s # %s", key, chosen, note)
		return
	}
	p.line("  # %s: %s # %s", key, otherwise, note)
}

// comment writes text in lines that begin with lead, and with the blanks that it begins with itself, and end before maxColumn.
func (p *page) comment(lead, text string) {
	lead += text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := ""
	flush := func() {
		if line != "" {
			p.line("%s", lead+line)
		}
		line = ""
	}
	room := maxColumn - utf8.RuneCountInString(lead)
	for _, word := range strings.Fields(forComment(text)) {
		for utf8.RuneCountInString(word) > room {
			flush()
			runes := []rune(word)
			line, word = string(runes[:room]), string(runes[room:])
			flush()
		}
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			flush()
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	flush()
}

// forComment is text without what YAML or a terminal would obey, or YAML refuses.
func forComment(text string) string {
	return strings.Map(func(c rune) rune {
		if c&0xfffe == 0xfffe { // no characters, by definition
			return -1
		}
		return c
	}, printable.Line(text))
}

// valueText is a string as a value: as it is where YAML takes it so, else in quotes.
func valueText(s string) string { return scalar(s, 0, false) }
