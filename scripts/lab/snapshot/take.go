package snapshot

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/nftables"
	"github.com/moby/sys/mountinfo"
)

//go:embed collect.sh
var collect string

// Host is a running host as the machine sees it.
type Host struct {
	PID int // its process 1
	// Run runs a bash script inside the host and returns its output.
	Run  func(ctx context.Context, script string) (string, error)
	Sums string // path of a file that keeps the checksums of the host's files for its next snapshot; empty: nothing is kept
}

// Take records the host.
func Take(ctx context.Context, h Host) (Snapshot, error) {
	ig, err := loadIgnore(AllowList)
	if err != nil {
		return nil, err
	}
	out, err := h.Run(ctx, collect)
	if err != nil {
		return nil, err
	}
	facts, err := parse(out)
	if err != nil {
		return nil, err
	}
	for _, more := range []func() ([]Fact, error){
		func() ([]Fact, error) { return mounts(h.PID) },
		func() ([]Fact, error) { return tables(h.PID) },
		func() ([]Fact, error) { return ipsets(h.PID) },
		func() ([]Fact, error) {
			return files(ctx, filepath.Join("/proc", strconv.Itoa(h.PID), "root"), ig, h.Sums)
		},
	} {
		f, err := more()
		if err != nil {
			return nil, err
		}
		facts = append(facts, f...)
	}
	kept := facts[:0]
	for _, f := range facts {
		if !ig.has(f.Kind, f.Key) {
			kept = append(kept, f)
		}
	}
	return tidy(kept), nil
}

func mounts(pid int) ([]Fact, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return mounted(f)
}

func mounted(r io.Reader) ([]Fact, error) {
	infos, err := mountinfo.GetMountsFromReader(r, nil)
	if err != nil {
		return nil, err
	}
	var facts []Fact
	inPods, inDocker := false, 0
	for _, m := range infos {
		switch {
		case inPod.MatchString(m.Mountpoint):
			inPods = true
		case dockers.MatchString(m.Mountpoint):
			inDocker++
		default:
			facts = append(facts, Fact{"mount", clean(m.Mountpoint), clean(strings.Join([]string{m.FSType, m.Source, m.Root, m.Options, m.VFSOptions}, " "))})
		}
	}
	if inPods {
		facts = append(facts, Fact{"mount", "containers of pods", ""})
	}
	if inDocker > 0 {
		facts = append(facts, Fact{"mount", "containers of docker", strconv.Itoa(inDocker)})
	}
	return facts, nil
}

// Where containers have their file systems, by containerd and by docker. Which ones there are changes by itself: one that ends, as that of a
// controller does which has lost its lease, the kubelet starts anew. Their pods have mounts of their own, which are recorded.
var (
	inPod   = regexp.MustCompile(`^/run/containerd/io\.containerd\.runtime\.v2\.task/k8s\.io/[0-9a-f]{64}/rootfs$`)
	dockers = regexp.MustCompile(`^/var/lib/docker/overlay2/[0-9a-f]{64}/merged$`)
)

// tables lists nftables' chains with their number of rules, and its sets, whatever
// tool made them: the host may have no program that shows them. A hook that lets everything
// pass does nothing, and iptables leaves such ones behind wherever it looked: it is
// left out, and so is a table that has nothing else.
func tables(pid int) ([]Fact, error) {
	ns, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = ns.Close() }()
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return nil, err
	}
	var facts []Fact
	chains, err := c.ListChains()
	if err != nil {
		return nil, err
	}
	for _, chain := range chains {
		rules, err := c.GetRules(chain.Table, chain)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if len(rules) == 0 && chain.Hooknum != nil && (chain.Policy == nil || *chain.Policy == nftables.ChainPolicyAccept) {
			continue
		}
		facts = append(facts, Fact{"nft", fmt.Sprintf("%d %s %s", chain.Table.Family, chain.Table.Name, chain.Name), fmt.Sprintf("chain of %d rules", len(rules))})
	}
	sets, err := namedSets(c)
	return append(facts, sets...), err
}

// trees are the file systems of a host that hold files of its own.
var trees = []string{".", "var", "run", "tmp"}

func files(ctx context.Context, path string, ig ignore, kept string) ([]Fact, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	known, err := readSums(kept)
	if err != nil {
		return nil, err
	}
	w := walk{root: root, ignore: ig, seen: map[string]bool{}, sums: known, buffer: make([]byte, 1<<16)}
	for _, tree := range trees {
		w.tree = tree
		err := fs.WalkDir(root.FS(), tree, func(path string, d fs.DirEntry, err error) error {
			err = errors.Join(err, ctx.Err())
			if err == nil {
				err = w.visit(path, d)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // gone since its folder was listed
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return w.facts, known.write()
}

type walk struct {
	root   *os.Root
	ignore ignore
	tree   string
	device uint64 // of tree
	seen   map[string]bool
	facts  []Fact
	sums   *sums
	buffer []byte
}

func (w *walk) visit(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if path == w.tree {
		w.device = st.Dev
	}
	if d.IsDir() && st.Dev != w.device {
		return fs.SkipDir
	}
	name := "/" + path
	if path == "." {
		name = "/"
	}
	if !w.seen[name] && !w.ignore.has("file", name) {
		w.seen[name] = true
		value, err := w.describe(path, info, st)
		if err != nil {
			return err
		}
		w.facts = append(w.facts, Fact{"file", clean(name), value})
	}
	if d.IsDir() && w.ignore.allBelow("file", name) {
		return fs.SkipDir
	}
	return nil
}

func (w *walk) describe(path string, info fs.FileInfo, st *syscall.Stat_t) (string, error) {
	owner := fmt.Sprintf("%04o %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	switch info.Mode().Type() {
	case 0:
		sum, err := w.sums.of(st, func() (string, error) { return w.hash(path) })
		return owner + " " + sum, err
	case fs.ModeSymlink:
		target, err := w.root.Readlink(path)
		return fmt.Sprintf("%d:%d -> %s", st.Uid, st.Gid, clean(target)), err
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return fmt.Sprintf("%s %s %d", owner, info.Mode().Type(), st.Rdev), nil
	default:
		return owner + " " + info.Mode().Type().String(), nil
	}
}

func (w *walk) hash(path string) (string, error) {
	f, err := w.root.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{f}, w.buffer); err != nil { // a file alone would make a buffer of its own
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// clean keeps a name with a tab or a line break on one line.
func clean(s string) string {
	if strings.ContainsAny(s, "\t\n") {
		return strconv.Quote(s)
	}
	return s
}
