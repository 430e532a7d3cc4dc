package plan

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

func (b *builder) repositories(h *host) {
	minor := b.VersionOf(h.Machine).MinorString()
	b.repository(h, repository{
		name: "kubernetes", title: "Kubernetes " + minor, source: b.kubernetesSource(minor),
		suite: "/",
	})
	if b.hasRuntimePackage(h) && !h.opened("docker") {
		b.skip(h, "repo/docker", "the runtime is installed")
		return
	}
	b.repository(h, b.dockerRepository(h))
}

func (b *builder) dockerRepository(h *host) repository {
	return repository{
		name: "docker", title: "Docker", source: effective(catalog.DockerSource, b.Inventory.Repositories.Docker, "/gpg", h.Facts.OS.ID),
		suite: h.Facts.OS.Codename + " stable", optional: true,
	}
}

func (b *builder) kubernetesSource(minor string) catalog.Source {
	source := effective(catalog.KubernetesSource, b.Inventory.Repositories.Kubernetes, "/Release.key", minor)
	if r := b.Inventory.Repositories.Kubernetes; r.URL == "" && r.KeyURL == "" { // a mirror knows nothing of other minors
		source.SameKeyURLs = catalog.KubernetesKeyURLs(minor)
	}
	return source
}

// effective is the catalog's source with the parts that its addresses want, and the inventory's overrides. keyFile is where a
// mirror has the key.
func effective(c catalog.Source, r inventory.Repository, keyFile string, parts ...any) catalog.Source {
	fill := func(pattern string) string { return fmt.Sprintf(pattern, parts[:strings.Count(pattern, "%s")]...) }
	s := catalog.Source{URL: fill(c.URL), KeyURL: fill(c.KeyURL), Fingerprints: c.Fingerprints, Packages: c.Packages}
	if r.URL != "" {
		s.URL = strings.TrimSuffix(r.URL, "/")
		s.KeyURL = s.URL + keyFile
	}
	if r.KeyURL != "" {
		s.KeyURL = r.KeyURL
	}
	if r.Fingerprint != "" {
		s.Fingerprints = []string{r.Fingerprint}
	}
	return s
}

type repository struct {
	name, title string
	source      catalog.Source
	suite       string // suite and components; "/" for a flat repository
	optional    bool   // a suite that the repository does not have is no error
	files       map[string]graph.File
}

func listOf(name string) string { return "/etc/apt/sources.list.d/kgpu-" + name + ".list" }

// preferencesOf is the file in which apt reads what it may take from a repository. Of two files that speak of a package apt heeds
// the first: those of others come before it, and cuda's own kgpu-nvidia, too.
func preferencesOf(name string) string { return "/etc/apt/preferences.d/zz-kgpu-" + name }

// opened reports whether an earlier kgpu has added a repository without a word on what apt may take from it.
func (h *host) opened(name string) bool {
	_, list := h.Facts.Files[listOf(name)]
	_, preferences := h.Facts.Files[preferencesOf(name)]
	return list && !preferences
}

func (b *builder) repository(h *host, r repository) {
	keyring := "/etc/apt/keyrings/kgpu-" + r.name + ".gpg"
	list, preferences := listOf(r.name), preferencesOf(r.name)
	uri := r.source.URL
	if r.suite == "/" {
		uri += "/"
	}
	line := fmt.Sprintf("deb [signed-by=%s] %s %s", keyring, uri, r.suite)
	reasons := append(changed(h.Facts, r.files), changed(h.Facts, map[string]graph.File{list: text(line + "\n")})...)
	if _, ok := h.Facts.Files[keyring]; !ok && len(reasons) == 0 {
		reasons = []string{keyring + " is missing"}
	}
	if len(reasons) == 0 && h.opened(r.name) { // what is in it depends on how the repository calls itself
		reasons = []string{preferences + " is missing"}
	}
	if due := keyDue(h.Facts, keyring); due != "" {
		reasons = append(reasons, due)
	}
	values := map[string]string{
		"name": r.name, "key_url": lines(append([]string{r.source.KeyURL}, r.source.SameKeyURLs...)...), "fingerprint": lines(r.source.Fingerprints...),
		"keyring": keyring, "list": list, "line": line, "preferences": preferences, "packages": lines(r.source.Packages...),
	}
	if r.optional {
		values["optional"] = "yes"
	}
	b.unless(h, reasons, "the repository is set up", graph.Step{
		Ref: graph.Ref{ID: "repo/" + r.name}, Title: "add the package repository of " + r.title,
		Input: graph.Input{Values: values, Files: r.files},
	})
}
