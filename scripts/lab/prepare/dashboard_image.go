package prepare

import (
	"context"
	"regexp"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kgpu.dev/kgpu/scripts/manifests"
)

var imageOfManifest = regexp.MustCompile(`(?m)^ *image: (\S+)$`)

// dashboard makes the image that stands in for the one in kgpu's manifest of the dashboard: a web server at its port, whatever
// its arguments are.
func (p *preparer) dashboard(ctx context.Context) error {
	server := image{
		names:   []string{imageOfManifest.FindStringSubmatch(string(manifests.Dashboard))[1]},
		program: p.built(netbox), at: "usr/local/bin/netbox",
		tools: true, config: v1.Config{Entrypoint: []string{"sh", "-c", "exec netbox serve :4466"}},
	}
	return p.do(ctx, p.imageSet("dashboard", []image{server}, p.toolsTree(), []any{p.build(netbox).inputs}))
}
