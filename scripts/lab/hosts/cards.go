package hosts

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Cards are the NVIDIA cards of a host. They stand in for real ones: see REAL.md.
type Cards struct {
	Count int    `json:"count"`
	Model string `json:"model"`
	// Nouveau says that the host's kernel has that driver, and NouveauUsers how many hold it from the boot on.
	Nouveau      bool `json:"nouveau,omitempty"`
	NouveauUsers int  `json:"nouveauUsers,omitempty"`
	SecureBoot   bool `json:"secureBoot,omitempty"`
	NVSwitch     bool `json:"nvswitch,omitempty"`
	NVLink5      bool `json:"nvlink5,omitempty"` // with switches behind ConnectX bridges
	// OldKernel says that the host runs an older kernel of the machine's line, until the package of the machine's is installed.
	OldKernel bool `json:"oldKernel,omitempty"`
}

// model is one kind of card. IDs: https://pci-ids.ucw.cz/, vendor 10de; names and memory as nvidia-smi reports them; compute
// capability: https://developer.nvidia.com/cuda-gpus and its list of legacy GPUs.
type model struct {
	name              string
	class             string
	device, subsystem string
	architecture      string
	capability        string
	mebibytes         int
	nvswitch          string // device ID of the switches that connect such cards; empty: none do
}

var models = map[string]model{
	"K80":     {"Tesla K80", "030200", "102d", "106c", "Kepler", "3.7", 11441, ""},
	"P100":    {"Tesla P100-PCIE-16GB", "030200", "15f8", "118f", "Pascal", "6.0", 16384, ""},
	"V100":    {"Tesla V100-SXM2-16GB", "030200", "1db1", "1212", "Volta", "7.0", 16384, ""},
	"T4":      {"Tesla T4", "030200", "1eb8", "12a2", "Turing", "7.5", 15360, ""},
	"A100":    {"NVIDIA A100-SXM4-40GB", "030200", "20b0", "134f", "Ampere", "8.0", 40960, "1af1"},
	"L40S":    {"NVIDIA L40S", "030200", "26b9", "1851", "Ada", "8.9", 46068, ""},
	"RTX4090": {"NVIDIA GeForce RTX 4090", "030000", "2684", "167c", "Ada", "8.9", 24564, ""},
	"H100":    {"NVIDIA H100 80GB HBM3", "030200", "2330", "16c1", "Hopper", "9.0", 81559, "22a3"},
	"B200":    {"NVIDIA B200", "030200", "2901", "1999", "Blackwell", "10.0", 183359, ""},
}

// Where the functions of a host with eight cards are, roughly as in such machines.
var (
	cardAddresses   = []string{"0000:17:00.0", "0000:3d:00.0", "0000:60:00.0", "0000:70:00.0", "0000:98:00.0", "0000:b1:00.0", "0000:ca:00.0", "0000:dd:00.0"}
	switchAddresses = []string{"0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0"}
	bridgeAddresses = []string{"0000:a0:00.0", "0000:a0:00.1"}
)

// Models lists the kinds of cards.
func Models() []string { return slices.Sorted(maps.Keys(models)) }

// Deal gives cards to wanted hosts: each hand is HOST=COUNTxMODEL and, after commas, words.
func Deal(specs []Spec, hands []string) error {
	for _, hand := range hands {
		host, cards, err := parseHand(hand)
		if err != nil {
			return fmt.Errorf("cards %q: %w", hand, err)
		}
		i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == host })
		if i < 0 {
			return fmt.Errorf("cards %q: there is to be no host %s", hand, host)
		}
		if specs[i].Cards != nil {
			return fmt.Errorf("cards %q: %s has some already", hand, host)
		}
		specs[i].Cards = &cards
	}
	return nil
}

func parseHand(hand string) (host string, c Cards, err error) {
	host, what, _ := strings.Cut(hand, "=")
	words := strings.Split(what, ",")
	count, name, _ := strings.Cut(words[0], "x")
	c.Model = name
	if c.Count, err = strconv.Atoi(count); err != nil || c.Count < 1 || c.Count > len(cardAddresses) {
		return "", c, fmt.Errorf("want HOST=COUNTxMODEL, such as w1=2xA100, with 1 to %d cards", len(cardAddresses))
	}
	m, known := models[name]
	if !known {
		return "", c, fmt.Errorf("no model %q: want one of %s", name, strings.Join(Models(), ", "))
	}
	for _, word := range words[1:] {
		switch word {
		case "nouveau":
			c.Nouveau = true
		case "nouveau-busy":
			c.Nouveau, c.NouveauUsers = true, 1
		case "secureboot":
			c.SecureBoot = true
		case "nvswitch":
			if m.nvswitch == "" {
				return "", c, fmt.Errorf("no NVSwitches connect cards of model %s", name)
			}
			c.NVSwitch = true
		case "nvlink5":
			if name != "B200" {
				return "", c, fmt.Errorf("no NVLink 5 switches connect cards of model %s", name)
			}
			c.NVLink5 = true
		case "oldkernel":
			c.OldKernel = true
		default:
			return "", c, fmt.Errorf("unknown word %q: want nouveau, nouveau-busy, secureboot, nvswitch, nvlink5 or oldkernel", word)
		}
	}
	return host, c, nil
}

// function is one PCI function of the host.
type function struct {
	address, class, device, subsystem string
	vendor                            uint16
	vpd                               string // its vital product data; empty: it has none
}

const nvidia, mellanox = 0x10de, 0x15b3

func (c Cards) functions() []function {
	m := models[c.Model]
	var all []function
	for _, a := range cardAddresses[:c.Count] {
		all = append(all, function{a, m.class, m.device, m.subsystem, nvidia, ""})
	}
	if c.NVSwitch {
		for _, a := range switchAddresses {
			all = append(all, function{a, "068000", m.nvswitch, m.nvswitch, nvidia, ""})
		}
	}
	if c.NVLink5 { // ConnectX-7; a network card of the same kind says something else
		for _, a := range bridgeAddresses {
			all = append(all, function{a, "020700", "1021", "0040", mellanox, "\x82\x10\x00NVLink 5 switches\x90\x0e\x00V0\x0bSMDL=SW_MNG\x78"})
		}
	}
	return all
}

// table is what the stand-ins inside the host read: the modules' and NVML's.
func (c Cards) table(host string) string {
	var b strings.Builder
	b.WriteString("# The lab's cards of this host, for the stand-ins of NVIDIA's driver.\n" +
		"# gpu ADDRESS UUID DEVICE SUBSYSTEM ARCHITECTURE CAPABILITY MEBIBYTES NAME\n")
	m := models[c.Model]
	for i, address := range cardAddresses[:c.Count] {
		fmt.Fprintf(&b, "gpu %s %s %s %s %s %s %d %s\n", address, uuid(host, i), m.device, m.subsystem, m.architecture, m.capability, m.mebibytes, m.name)
	}
	if c.NVSwitch {
		for _, address := range switchAddresses {
			fmt.Fprintf(&b, "switch %s\n", address)
		}
	}
	if c.NVLink5 {
		for _, address := range bridgeAddresses {
			fmt.Fprintf(&b, "bridge %s\n", address)
		}
	}
	if c.Nouveau {
		fmt.Fprintf(&b, "nouveau %d\n", c.NouveauUsers)
	}
	if c.SecureBoot {
		b.WriteString("secureboot\n")
	}
	return b.String()
}

// uuid is the same for a host's card in every boot and every lab.
func uuid(host string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", host, index))
	h := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("GPU-%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// kmodStandIn takes the place of the host's module tools.
//
//go:embed cards/kmod.sh
var kmodStandIn []byte

const (
	cardTable = "etc/kgpu-lab/gpu-cards"
	faults    = "etc/kgpu-lab/gpu-faults"
	kmod      = "usr/bin/kmod"
	dpkgData  = "var/lib/dpkg"
)

// cardFiles are the files of a host with cards. dpkg knows of the tools' new place, as after dpkg-divert --local --rename.
func (h *Host) cardFiles(base string) ([]overlayFile, error) {
	if h.Cards == nil {
		return nil, nil
	}
	real, err := os.ReadFile(filepath.Join(base, kmod))
	if err != nil {
		return nil, err
	}
	files := []overlayFile{
		{cardTable, 0o644, []byte(h.Cards.table(h.Name))},
		{faults, 0o644, nil},
		{kmod, 0o755, kmodStandIn},
		{kmod + ".real", 0o755, real},
	}
	if h.Cards.OldKernel {
		old, err := oldKernelFiles(base)
		return append(files, old...), err
	}
	return files, nil
}

// divertKmod writes the diversion into the host's var.
func (h *Host) divertKmod(dir string) error {
	if h.Cards == nil {
		return nil
	}
	// dpkg keeps the list in an order of its own: what it writes now it writes again.
	divert := exec.Command("dpkg-divert", "--admindir", filepath.Join(dir, dpkgData), "--local", "--no-rename", "--divert", "/"+kmod+".real", "--add", "/"+kmod)
	if out, err := divert.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", divert, err, out)
	}
	return nil
}
