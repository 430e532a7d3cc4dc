// Package prepare builds everything that the lab's internet serves and its hosts start from, out of Go modules and Debian packages:
// base systems, Kubernetes and its companions, container images, package repositories, keys. All of it is cached by its inputs.
package prepare

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/problem"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// Options says what to prepare and where.
type Options struct {
	Place place.Place
	What  []string  // targets beyond the default set, see Targets; "all" is every one
	Out   io.Writer // one progress line per item
}

// Targets names what Run accepts in Options.What, apart from "all".
func Targets() []string { return slices.Sorted(maps.Keys(targets)) }

var targets = map[string]func(*preparer){
	"docker":   func(p *preparer) { p.docker = true },
	"noble":    func(p *preparer) { p.docker, p.noble = true, true },
	"gpu":      func(p *preparer) { p.cards = true },
	"k8s-1.35": func(p *preparer) { p.releases = append(p.releases, release135) },
	"k8s-1.23": func(p *preparer) { p.docker = true; p.releases = append(p.releases, release123) },
}

// preparer is one run: what was asked for and where it goes.
type preparer struct {
	place.Place
	*items
	releases []release
	docker   bool
	noble    bool
	cards    bool
}

// sources are this package's own files: an item's stamp depends on those that describe its recipe.
//
//go:embed *.go files
var sources embed.FS

// Run prepares the default set (a Debian 13 base, the newest Kubernetes, containerd, flannel) and the targets asked for. Items
// that are there already are left alone; one that was interrupted is made anew. It needs root, for the base's file owners.
func Run(ctx context.Context, o Options) error {
	p := &preparer{Place: o.Place, items: newItems(o.Out), releases: []release{release136, release136Before}}
	for _, what := range o.What {
		if what == "all" {
			for _, t := range Targets() {
				targets[t](p)
			}
			continue
		}
		add, known := targets[what]
		if !known {
			return fmt.Errorf("unknown target %q: want one of %s, all [LAB_USAGE]", what, strings.Join(Targets(), ", "))
		}
		add(p)
	}
	return p.run(ctx)
}

// run first looks whether everything is there, which takes no lock: labs start while another prepare builds what they do not need.
func (p *preparer) run(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return &problem.Problem{Step: "prepare", Reason: "LAB_NOT_ROOT", Advice: "Run it as root: the base systems' files belong to root."}
	}
	err := p.look(ctx)
	if !errors.Is(err, errStale) {
		return err
	}
	if err := os.MkdirAll(p.Cache, 0o755); err != nil {
		return err
	}
	unlock, err := process.Lock(filepath.Join(p.Cache, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(p.work(), 0o755); err != nil {
		return err
	}
	if err := p.checkSpace(); err != nil {
		return err
	}
	if err := p.tools(ctx); err != nil {
		return err
	}
	if err := p.steps(ctx); err != nil {
		return err
	}
	return os.RemoveAll(p.work())
}

// look goes through the items without making any; errStale says that one is to be made.
func (p *preparer) look(ctx context.Context) error {
	var said bytes.Buffer
	look := *p
	look.items = newItems(&said)
	look.items.lookOnly = true
	if err := look.steps(ctx); err != nil {
		return err
	}
	_, err := said.WriteTo(p.out)
	return err
}

func (p *preparer) steps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.keys, p.buildAll, p.bases, p.kubernetesRepositories, p.archives, p.dockerArtefacts, p.images, p.dashboard, p.gpu, p.extra, p.names,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	p.total()
	return nil
}

// work holds what only a running prepare needs: the Go build cache and half-made things.
func (p *preparer) work() string { return filepath.Join(p.Cache, "work") }
