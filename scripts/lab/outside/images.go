package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/scripts/manifests"
)

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: (\S+)$`)

// imageNames are all images that kgpu has pods run, and the pause image of every minor that pkgs.k8s.io has.
func imageNames() []string {
	all := bytes.Join([][]byte{
		manifests.Flannel, manifests.Weave, manifests.DevicePlugin, manifests.MPS, manifests.Notebook, manifests.Dashboard,
	}, []byte("\n"))
	out := []string{
		catalog.DevicePluginImage, catalog.NotebookImage(catalog.TensorFlow, ""), catalog.NotebookImage(catalog.PyTorch, ""),
	}
	for _, s := range catalog.Samples() {
		out = append(out, s.Image)
	}
	for _, m := range imageLine.FindAllSubmatch(all, -1) {
		out = append(out, string(m[1]))
	}
	for n := range 1000 {
		if m, known := catalog.Kubernetes(n); known && m.Published() {
			out = append(out, "registry.k8s.io/pause:"+m.Pause())
		}
	}
	return unique(out)
}

func (s *surveyor) images() []question {
	var out []question
	for _, image := range imageNames() {
		out = append(out, func(ctx context.Context) { s.image(ctx, image) })
	}
	return out
}

// image asks a registry for an image, and for tags of the same shape that are newer.
func (s *surveyor) image(ctx context.Context, image string) {
	r := row{name: "image " + image, where: image}
	defer func() { s.add(r) }()
	ref, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		r.state, r.found = dead, err.Error()
		return
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(s.client.Transport)}
	if _, err := remote.Head(ref, options...); err != nil {
		r.state, r.found = dead, registryWords(err)
		return
	}
	tags, err := remote.List(ref.Repository, options...)
	if err != nil {
		return // many registries list no tags for everybody
	}
	if later := newestLike(ref.TagStr(), tags); later != "" {
		r.state, r.found = newer, "there is "+later
	}
}

func registryWords(err error) string {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return "the registry answers " + http.StatusText(answer.StatusCode)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
