// Package hosts is the life of a lab's hosts. A host is systemd as process 1
// in namespaces of its own, over a root that is an overlay of a base system;
// one supervisor process per host boots it, and boots it again when it reboots.
// Mounts and network namespaces belong to the host's processes, so the kernel
// takes them away when those end, however they end.
package hosts

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/cgroup"
	"kgpu.dev/kgpu/scripts/lab/network"
	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/problem"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// Lab is one lab of this machine.
type Lab struct {
	place.Place
	network.Network
	Out io.Writer // what its verbs print
}

// labRecord is kept from the first `up` until `destroy`: hosts keep addresses
// in many of their files, so the number must not change.
type labRecord struct {
	Number int `json:"number"`
}

const maxLabs = 100

// Create opens the lab, and makes it when there is none yet.
func Create(p place.Place, out io.Writer) (*Lab, error) {
	if err := os.MkdirAll(filepath.Join(p.State, "hosts"), 0o755); err != nil {
		return nil, err
	}
	unlock, err := process.Lock(filepath.Join(p.Root(), ".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := Open(p, out)
	if err == nil || !errors.Is(err, ErrNoLab) {
		return l, err
	}
	number, err := freeNumber(p)
	if err != nil {
		return nil, err
	}
	if err := process.Save(recordPath(p), labRecord{Number: number}); err != nil {
		return nil, err
	}
	return Open(p, out)
}

// ErrNoLab says that the lab was never made, or destroyed.
var ErrNoLab = errors.New("no such lab")

// Open opens a lab that was made before.
func Open(p place.Place, out io.Writer) (*Lab, error) {
	var rec labRecord
	found, err := process.Load(recordPath(p), &rec)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &problem.Problem{
			Step: "open lab " + p.Name, Reason: "LAB_UNKNOWN", Err: ErrNoLab,
			Advice: "`lab up` makes it.",
		}
	}
	return &Lab{Place: p, Network: network.Network{Number: rec.Number, Owner: p.State}, Out: out}, nil
}

func recordPath(p place.Place) string { return filepath.Join(p.State, "lab.json") }

// freeNumber is 0 for the default lab and otherwise the first that no lab
// beside it has and no bridge of the machine.
func freeNumber(p place.Place) (int, error) {
	first := 1
	if p.Name == place.DefaultName {
		first = 0
	}
	used := map[int]bool{}
	neighbours, err := filepath.Glob(filepath.Join(p.Root(), "*", "lab.json"))
	if err != nil {
		return 0, err
	}
	for _, path := range neighbours {
		var rec labRecord
		if _, err := process.Load(path, &rec); err != nil {
			return 0, err
		}
		used[rec.Number] = true
	}
	for n := first; n < maxLabs; n++ {
		if _, err := net.InterfaceByName(network.Network{Number: n}.Bridge()); err != nil && !used[n] {
			return n, nil
		}
	}
	return 0, &problem.Problem{Step: "number lab " + p.Name, Reason: "LAB_NO_NUMBER", Advice: "Destroy a lab that nobody uses."}
}

// lock keeps other commands from changing this lab at the same time.
func (l *Lab) lock() (unlock func(), err error) {
	return process.Lock(filepath.Join(l.State, ".lock"))
}

// Hosts lists the hosts that exist, in the order of their addresses.
func (l *Lab) Hosts() ([]*Host, error) {
	specs, err := filepath.Glob(filepath.Join(l.State, "hosts", "*", specFile))
	if err != nil {
		return nil, err
	}
	hosts := make([]*Host, 0, len(specs))
	for _, path := range specs {
		name := filepath.Base(filepath.Dir(path))
		if strings.HasPrefix(name, ".") {
			continue
		}
		h, err := l.Host(name)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b *Host) int {
		if a.Inner != b.Inner {
			if a.Inner {
				return 1
			}
			return -1
		}
		return int(a.Number) - int(b.Number)
	})
	return hosts, nil
}

// Host is one host of a lab.
type Host struct {
	Spec
	lab *Lab
}

const specFile = "spec.json"

// Host returns a host that exists.
func (l *Lab) Host(name string) (*Host, error) {
	h := &Host{Spec: Spec{Name: name}, lab: l}
	found, err := process.Load(h.path(specFile), &h.Spec)
	if err != nil {
		return nil, err
	}
	if !found || filepath.Base(name) != name {
		return nil, &problem.Problem{Host: name, Step: "find", Reason: "LAB_HOST_UNKNOWN", Advice: "`lab status` lists the hosts."}
	}
	return h, nil
}

func (h *Host) path(parts ...string) string {
	return filepath.Join(append([]string{h.lab.Place.Host(h.Name)}, parts...)...)
}

// Cables are the host's connections, the one with its address first.
func (h *Host) Cables() []network.Cable { return h.cables(h.lab.Network) }

// groups is the parent of all labs' control groups.
const groups = "kgpu-lab"

// group bears the bridge's name: labs in other state folders may have this one's.
func (l *Lab) group() (cgroup.Group, error) { return cgroup.New(filepath.Join(groups, l.Bridge())) }

func (h *Host) group() (cgroup.Group, error) {
	return cgroup.New(filepath.Join(groups, h.lab.Bridge(), h.Name))
}

func (h *Host) fail(step, reason, advice string, err error) error {
	return &problem.Problem{Host: h.Name, Step: step, Reason: reason, Advice: advice, Err: err}
}

// supervisor is the record of the process that runs the host.
func (h *Host) supervisor() process.Record {
	var r process.Record
	_, _ = process.Load(h.path("supervisor.json"), &r)
	return r
}

// boot describes a running system.
type boot struct {
	Count int            `json:"count"` // boots since the host was made
	Init  process.Record `json:"init"`  // its process 1, seen from the machine
}

// running returns the host's present boot.
func (h *Host) running() (boot, bool) {
	var b boot
	found, err := process.Load(h.path("boot.json"), &b)
	return b, found && err == nil && b.Init.Alive()
}

// Root is where the machine sees the root of a host that is up: that of its process 1.
func (l *Lab) Root(name string) (dir string, up bool) {
	h, err := l.Host(name)
	if err != nil {
		return "", false
	}
	b, up := h.running()
	return fmt.Sprintf("/proc/%d/root", b.Init.PID), up
}

func (h *Host) needRunning() (boot, error) {
	b, up := h.running()
	if !up {
		return b, h.fail("look for its process 1", "LAB_HOST_OFF", fmt.Sprintf("`lab start %s` starts it.", h.Name), nil)
	}
	return b, nil
}
