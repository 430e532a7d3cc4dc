package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// downloads asks for the files that kgpu knows the sums of, and for the newest releases of their makers.
func (s *surveyor) downloads() []question {
	var out []question
	for _, d := range []catalog.Download{catalog.CRIDockerd, catalog.Calico} {
		for arch, sum := range d.SHA256 {
			url := strings.ReplaceAll(d.URL, "%s", arch)
			out = append(out, func(ctx context.Context) { s.file(ctx, url, sum) })
		}
		out = append(out, func(ctx context.Context) { s.release(ctx, maker(d.URL), d.Version) })
	}
	return out
}

func (s *surveyor) file(ctx context.Context, url, sum string) {
	r := row{name: url[strings.LastIndex(url, "/")+1:], where: url}
	data, err := s.get(ctx, url)
	have := sha256.Sum256(data)
	switch got := hex.EncodeToString(have[:]); {
	case err != nil:
		r.state, r.found = dead, err.Error()
	case got != sum:
		r.state, r.found = changed, "its SHA-256 is "+got
	}
	s.add(r)
}

// maker is the repository at GitHub that a file comes from.
func maker(url string) string {
	parts := strings.Split(url, "/") // https: "" host owner name …
	return "https://github.com/" + parts[3] + "/" + parts[4]
}

func (s *surveyor) release(ctx context.Context, repository, version string) {
	r := row{name: repository[strings.LastIndex(repository, "/")+1:] + " " + version, where: repository + "/releases/latest"}
	tag, err := s.newest(ctx, repository)
	switch {
	case err != nil:
		r.state, r.found = dead, err.Error()
	case newestLike("v"+version, []string{tag}) != "":
		r.state, r.found = newer, fmt.Sprintf("there is %s", tag)
	}
	s.add(r)
}
