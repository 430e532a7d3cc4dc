package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// release is a release of a distribution that kgpu makes new nodes of.
type release struct {
	name     string // as the catalog has it: ubuntu 24.04
	codename string
	arches   []string // dpkg's words
	kernels  []string // meta-packages of the kernels that are tried, of every architecture
}

// releases are those that have not ended. Codenames: wiki.ubuntu.com/Releases, wiki.debian.org/DebianReleases.
var releases = []release{
	{"ubuntu 22.04", "jammy", []string{"amd64", "arm64"}, []string{"linux-image-generic", "linux-image-generic-hwe-22.04"}},
	{"ubuntu 24.04", "noble", []string{"amd64", "arm64"}, []string{"linux-image-generic", "linux-image-generic-hwe-24.04"}},
	{"ubuntu 26.04", "resolute", []string{"amd64", "arm64"}, []string{"linux-image-generic"}},
	{"debian 12", "bookworm", []string{"amd64", "arm64"}, nil},
	{"debian 13", "trixie", []string{"amd64", "arm64"}, nil},
}

// cudaArch is NVIDIA's word for dpkg's architectures.
var cudaArch = map[string]string{"amd64": "x86_64", "arm64": "sbsa"}

func (r release) distribution() string { id, _, _ := strings.Cut(r.name, " "); return id }

// eachArch makes a question of every release and architecture.
func eachArch(ask func(ctx context.Context, r release, arch string)) []question {
	var out []question
	for _, r := range releases {
		for _, arch := range r.arches {
			out = append(out, func(ctx context.Context) { ask(ctx, r, arch) })
		}
	}
	return out
}

func (s *surveyor) docker() []question {
	packages := []string{"docker-ce", "docker-ce-cli", "containerd.io"}
	return eachArch(func(ctx context.Context, r release, arch string) {
		source, name := catalog.DockerSource, "docker for "+r.name+" "+arch
		url := fmt.Sprintf(source.URL, r.distribution())
		if keys := s.key(ctx, "docker for "+r.distribution(), fmt.Sprintf(source.KeyURL, r.distribution()), source.Fingerprints); keys != nil {
			offers, ok := s.index(ctx, repository{name, url, r.codename, []string{"stable"}, arch, keys})
			s.offers(ok, offers, url, r.name+" "+arch, packages)
		}
	})
}

func (s *surveyor) toolkit() []question {
	var out []question
	for arch := range cudaArch {
		out = append(out, func(ctx context.Context) {
			source, name := catalog.ToolkitSource, "the container toolkit for "+arch
			url := fmt.Sprintf(source.URL, arch)
			keys := s.key(ctx, "the container toolkit", source.KeyURL, source.Fingerprints)
			if keys == nil {
				return
			}
			offers, ok := s.index(ctx, repository{name: name, url: url, keys: keys})
			if !ok {
				return
			}
			for _, p := range catalog.ToolkitPackages {
				s.version(p, catalog.ToolkitVersion, offers.versions(p), url)
			}
		})
	}
	return out
}

// version says whether one version of a package is among those that there are, and whether a newer one is.
func (s *surveyor) version(name, want string, versions []string, where string) {
	r := row{name: name + " " + want, where: where}
	switch later := newestLike(want, versions); {
	case !slices.Contains(versions, want):
		r.state, r.found = dead, fmt.Sprintf("there are %v", versions)
	case later != "":
		r.state, r.found = newer, "there is "+later
	}
	s.add(r)
}

// offers asks for packages in any version.
func (s *surveyor) offers(ok bool, o offer, where, whose string, packages []string) {
	for _, p := range packages {
		if _, there := o[p]; ok {
			s.there(there, p+" for "+whose, where)
		}
	}
}

// cuda asks NVIDIA's repository for the toolkits, their cuDNN and the drivers that the catalog says it has for a release.
func (s *surveyor) cuda() []question {
	return eachArch(func(ctx context.Context, r release, arch string) {
		source, name, file := catalog.CUDASource, "NVIDIA for "+r.name+" "+arch, catalog.CUDAKeyFile(r.name)
		folder := strings.NewReplacer(" ", "", ".", "").Replace(r.name)
		url := fmt.Sprintf(source.URL, folder, cudaArch[arch])
		keys := s.key(ctx, name, fmt.Sprintf(source.KeyURL, folder, cudaArch[arch], file), source.Fingerprints)
		if keys == nil {
			return
		}
		offers, ok := s.index(ctx, repository{name: name, url: url, keys: keys})
		if !ok {
			return
		}
		packages := slices.Concat(toolkits(r), drivers(catalog.FromCUDA, r, nil))
		s.offers(ok, offers, url, r.name+" "+arch, packages)
		s.later(offers, url, toolkitName, catalog.CUDAToolkits()[len(catalog.CUDAToolkits())-1].Package())
		s.later(offers, url, pinningName, fmt.Sprintf("nvidia-driver-pinning-%d", slices.Max(catalog.DriverBranches())))
	})
}

// What tells of a newer toolkit, and of a newer branch of the driver.
var (
	toolkitName = regexp.MustCompile(`^cuda-toolkit-\d+-\d+$`)
	pinningName = regexp.MustCompile(`^nvidia-driver-pinning-\d+$`)
	serverName  = regexp.MustCompile(`^nvidia-utils-\d+-server$`)
)

// later says whether a repository has a newer package of a kind than the newest that kgpu knows.
func (s *surveyor) later(o offer, where string, kind *regexp.Regexp, newest string) {
	var names []string
	for name := range o {
		if kind.MatchString(name) {
			names = append(names, name)
		}
	}
	r := row{name: "newest " + newest, where: where}
	if later := newestLike(newest, names); later != "" {
		r.state, r.found = newer, "there is "+later
	}
	s.add(r)
}

func toolkits(r release) []string {
	var out []string
	for _, c := range catalog.CUDAToolkits() {
		if slices.Contains(c.Releases, r.name) {
			out = append(out, c.Package(), c.CUDNN().Package)
		}
	}
	return unique(out)
}

// drivers are the packages of every driver that a source is said to have for a release: those whose names have a kernel's release
// in them for these kernels, and all others.
func drivers(source catalog.DriverSource, r release, kernels []string) []string {
	const none = "KERNEL"
	var out []string
	for _, number := range catalog.DriverOffer(source, r.name) {
		branch, _ := catalog.LookupDriverBranch(number)
		for _, flavour := range flavours(branch) {
			d := catalog.Driver{Source: source, Branch: number, Flavour: flavour}
			for _, kernel := range append(slices.Clone(kernels), none) {
				p := d.Packages(r.distribution(), kernel)
				out = append(out, slices.Concat(p.First, p.Driver)...)
			}
			if catalog.HasFabricManager(source) {
				out = append(out, d.FabricManager())
			}
		}
	}
	return slices.DeleteFunc(unique(out), func(name string) bool { return strings.Contains(name, none) })
}

// flavours are those that a branch has for any card.
func flavours(b catalog.DriverBranch) []catalog.Flavour {
	var out []catalog.Flavour
	for _, runs := range b.Runs {
		out = append(out, runs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// distributions asks Ubuntu's and Debian's archives for the drivers, for the kernels that are the newest of their lines.
func (s *surveyor) distributions() []question { return eachArch(s.distribution) }

func (s *surveyor) distribution(ctx context.Context, r release, arch string) {
	source, all := catalog.FromDebian, []repository{}
	switch {
	case r.distribution() == "ubuntu":
		source = catalog.FromUbuntu
		url := "http://archive.ubuntu.com/ubuntu"
		if arch != "amd64" {
			url = "http://ports.ubuntu.com/ubuntu-ports"
		}
		for _, suite := range []string{r.codename, r.codename + "-updates"} {
			all = append(all, repository{suite + " " + arch, url, suite, []string{"main", "restricted", "universe", "multiverse"}, arch, nil})
		}
	default:
		all = append(all, repository{r.codename + " " + arch, "http://deb.debian.org/debian", r.codename, []string{"main", "contrib", "non-free", "non-free-firmware"}, arch, nil})
	}
	offers := offer{}
	for _, each := range all {
		more, ok := s.index(ctx, each)
		if !ok {
			return
		}
		offers.add(more)
	}
	where := all[0].url
	s.offers(true, offers, where, r.name+" "+arch, r.kernels)
	s.offers(true, offers, where, r.name+" "+arch, drivers(source, r, offers.kernels(r.kernels)))
	if source == catalog.FromUbuntu {
		s.later(offers, where, serverName, fmt.Sprintf("nvidia-utils-%d-server", slices.Max(catalog.DriverOffer(source, r.name))))
	}
}

var imageName = regexp.MustCompile(`\blinux-image-(?:unsigned-)?(\d[^\s,|(]*)`)

// kernels are the releases of the kernels that meta-packages lead to.
func (o offer) kernels(metas []string) []string {
	var out []string
	for _, meta := range metas {
		var newest string
		for _, p := range o[meta] {
			if m := imageName.FindStringSubmatch(p.depends); m != nil && (newest == "" || compareNumbers(m[1], newest) > 0) {
				newest = m[1]
			}
		}
		if newest != "" {
			out = append(out, newest)
		}
	}
	return out
}

func (s *surveyor) ppa() []question {
	source := catalog.GraphicsDriversSource
	return eachArch(func(ctx context.Context, r release, arch string) {
		packages := drivers(catalog.FromPPA, r, nil)
		if len(packages) == 0 {
			return
		}
		name := "the graphics-drivers PPA for " + r.name + " " + arch
		if keys := s.key(ctx, "the graphics-drivers PPA", source.KeyURL, source.Fingerprints); keys != nil {
			offers, ok := s.index(ctx, repository{name, source.URL, r.codename, []string{"main"}, arch, keys})
			s.offers(ok, offers, source.URL, r.name+" "+arch, packages)
		}
	})
}

// calendar says what has ended, or ends soon, of what had not when the catalog was made.
func (s *surveyor) calendar() {
	for n := range 1000 {
		if m, known := catalog.Kubernetes(n); known && m.Supported(catalog.AsOf) && !m.Supported(s.now.Add(ahead)) {
			s.add(row{"Kubernetes " + m.Version().MinorString(), "fixes until " + m.EndOfLife.Format("2006-01-02"), aged, "it ends, or has ended"})
		}
	}
	for _, number := range catalog.DriverBranches() {
		if b, _ := catalog.LookupDriverBranch(number); !b.Ended() && !b.End.IsZero() && b.End.Before(s.now.Add(ahead)) {
			s.add(row{"driver branch " + strconv.Itoa(number), b.Support(), aged, "it ends, or has ended"})
		}
	}
	for _, r := range releases {
		if known, _ := catalog.LookupRelease(r.name); !known.Ended() && known.End.Before(s.now.Add(ahead)) {
			s.add(row{r.name, "updates until " + known.End.Format("2006-01-02"), aged, "it ends, or has ended"})
		}
	}
}
