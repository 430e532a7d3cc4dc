package inventory

import (
	"fmt"
	"regexp"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// Notebook is the Jupyter notebook with one card that ends the proof of a cluster with cards.
type Notebook struct {
	Framework catalog.Framework // empty: the one that computes on the cards; catalog.NoFramework: there is none
	Version   string            // of the framework; empty: the catalog's
	Image     string            // overrides both; empty: the framework's
	NodePort  int               // zero: 30061, or none where a host has a public address
	Storage   string            // a Kubernetes quantity; empty: what is written is gone with the pod

	IdleTimeout time.Duration // after which it stops and gives its card back; zero: it does not
}

func notebookKeys() keys[Notebook] {
	return keys[Notebook]{
		"framework":   value(func(n *Notebook) *catalog.Framework { return &n.Framework }, oneOf(catalog.TensorFlow, catalog.PyTorch, catalog.NoFramework)),
		"version":     rawValue(func(n *Notebook) *string { return &n.Version }, imageTag),
		"image":       value(func(n *Notebook) *string { return &n.Image }, image),
		"nodePort":    integer(func(n *Notebook) *int { return &n.NodePort }, minNodePort, maxNodePort),
		"storage":     rawValue(func(n *Notebook) *string { return &n.Storage }, quantity),
		"idleTimeout": rawValue(func(n *Notebook) *time.Duration { return &n.IdleTimeout }, idleTimeout),
	}
}

// Names of images as https://github.com/distribution/reference/blob/main/reference.go has them, with a registry in front.
var (
	imageTag = matching(regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_.]{0,100}$`), "%s is not a version as an image's tag has it, such as 2.17.0")
	image    = matching(regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@sha256:[0-9a-f]{64})?$`),
		"%s is not an image with its registry, such as docker.io/tensorflow/tensorflow:2.17.0-gpu-jupyter")
)

// The API server's default --service-node-port-range.
// Source: https://kubernetes.io/docs/concepts/services-networking/service/#type-nodeport.
const (
	minNodePort = 30000
	maxNodePort = 32767
)

func idleTimeout(s string) (time.Duration, error) {
	d, err := timeout(s)
	if err == nil && d < time.Minute {
		err = fmt.Errorf("must be at least 1m, is %s", s)
	}
	return d, err
}

// checkNotebook refuses to be asked for what an older Kubernetes will not get.
func (f *file) checkNotebook(m catalog.Minor) findings {
	if f.Notebook.IdleTimeout == 0 || m.Secured() {
		return nil
	}
	return found("notebook.idleTimeout", "kgpu sets this up with Kubernetes 1.%d and newer, not with %s: leave it out",
		catalog.SecuredSince, f.Kubernetes.Version.MinorString())
}

// quantity is what people write of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity:
// no exponents, no fractions of a byte, more than nothing.
var quantity = matching(regexp.MustCompile(`^0*[1-9][0-9]*(\.[0-9]+)?([KMGTPE]i|[kMGTPE])?$`), "%s is not a size such as 10Gi")
