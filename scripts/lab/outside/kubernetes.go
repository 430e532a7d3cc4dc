package main

import (
	"context"
	"fmt"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// kubernetes asks for every minor that pkgs.k8s.io is said to have, and for the one after the newest.
func (s *surveyor) kubernetes() []question {
	var out []question
	newest := 0
	for n := range 1000 {
		m, known := catalog.Kubernetes(n)
		if known && m.Published() {
			newest = n
			out = append(out, func(ctx context.Context) { s.minor(ctx, m) })
		}
	}
	return append(out, func(ctx context.Context) { s.nextMinor(ctx, newest) })
}

func (s *surveyor) minor(ctx context.Context, m catalog.Minor) {
	name, source := m.Version().MinorString(), catalog.KubernetesSource
	url := fmt.Sprintf(source.URL, name)
	keys := s.key(ctx, "Kubernetes "+name, fmt.Sprintf(source.KeyURL, name), source.Fingerprints)
	if keys == nil {
		return
	}
	offers, ok := s.index(ctx, repository{name: "Kubernetes " + name, url: url, keys: keys})
	if !ok {
		return
	}
	want := m.Version().String()
	for _, p := range catalog.KubernetesPackages {
		s.version(p, want, offers.upstream(p), url)
	}
}

// nextMinor says whether there is one after the newest that kgpu knows.
func (s *surveyor) nextMinor(ctx context.Context, newest int) {
	next := fmt.Sprintf("1.%d", newest+1)
	r := row{name: fmt.Sprintf("newest Kubernetes 1.%d", newest), where: fmt.Sprintf(catalog.KubernetesSource.URL, next)}
	if _, err := s.get(ctx, r.where+"/InRelease"); err == nil {
		r.state, r.found = newer, "there is "+next
	}
	s.add(r)
}
