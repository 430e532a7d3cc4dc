package prepare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// kubernetesRepositories packages the releases as pkgs.k8s.io does: the same package names, revision, files and units, in a repository
// for each minor.
func (p *preparer) kubernetesRepositories(ctx context.Context) error {
	for i, r := range p.releases {
		same := slices.DeleteFunc(slices.Clone(p.releases), func(other release) bool { return other.repository != r.repository })
		if p.releases[i].version != same[0].version {
			continue // it is in the repository of another
		}
		if err := p.do(ctx, p.kubernetesRepository(same)); err != nil {
			return err
		}
	}
	return nil
}

func (p *preparer) kubernetesRepository(releases []release) item {
	dir := filepath.Join(p.Cache, "www", filepath.FromSlash(releases[0].repository))
	inputs := []any{fmt.Sprintf("%+v", releases), p.build(plugins).inputs, p.fingerprints()}
	for _, r := range releases {
		inputs = append(inputs, p.kubernetes(r).inputs)
	}
	return item{
		name: "packages kubernetes " + releases[0].version, path: dir, inputs: inputs,
		files: []string{"kubernetes_debs.go", "deb.go", "repository.go",
			"files/kubelet.service", "files/10-kubeadm.conf", "files/kubelet.postinst"},
		make: func(ctx context.Context) error {
			fresh := filepath.Join(p.work(), "repository")
			if err := emptyDir(fresh); err != nil {
				return err
			}
			for _, r := range releases {
				if err := p.kubernetesDebs(ctx, r, filepath.Join(fresh, "amd64")); err != nil {
					return err
				}
			}
			if err := p.flatRepository(ctx, fresh); err != nil {
				return err
			}
			return replaceDir(fresh, dir)
		},
	}
}

func (p *preparer) kubernetesDebs(ctx context.Context, r release, into string) error {
	for _, d := range []func(release, string) (deb, error){p.kubectlDeb, p.kubeadmDeb, p.kubeletDeb, p.cniDeb} {
		tree := filepath.Join(p.work(), "deb")
		if err := emptyDir(tree); err != nil {
			return err
		}
		one, err := d(r, tree)
		if err != nil {
			return err
		}
		one.root = tree
		if err := p.buildDeb(ctx, one, into); err != nil {
			return err
		}
	}
	return nil
}

// revision is the one that pkgs.k8s.io gives to a version's first packages.
const revision = "-1.1"

func (p *preparer) kubectlDeb(r release, tree string) (deb, error) {
	return deb{name: "kubectl", version: r.version + revision}, p.command(r, "kubectl", tree)
}

// kubeadmDeb leaves out the dependency on cri-tools, which the lab cannot offer: see REAL.md.
func (p *preparer) kubeadmDeb(r release, tree string) (deb, error) {
	return deb{name: "kubeadm", version: r.version + revision}, p.command(r, "kubeadm", tree)
}

func (p *preparer) kubeletDeb(r release, tree string) (deb, error) {
	d := deb{
		name: "kubelet", version: r.version + revision,
		fields:    []string{"Depends: iptables (>= 1.4.21), kubernetes-cni (>= 1.2.0), mount, util-linux"},
		conffiles: []string{"/etc/default/kubelet"},
		postinst:  "files/kubelet.postinst",
	}
	units := filepath.Join(tree, r.unitDir)
	for to, from := range map[string]string{
		filepath.Join(units, "kubelet.service"):                   "files/kubelet.service",
		filepath.Join(units, "kubelet.service.d/10-kubeadm.conf"): "files/10-kubeadm.conf",
	} {
		text, err := sources.ReadFile(from)
		if err != nil {
			return d, err
		}
		if err := writeFile(to, text, 0o644); err != nil {
			return d, err
		}
	}
	if err := writeFile(filepath.Join(tree, "etc/default/kubelet"), []byte("KUBELET_EXTRA_ARGS=\n"), 0o644); err != nil {
		return d, err
	}
	if err := os.MkdirAll(filepath.Join(tree, "etc/kubernetes/manifests"), 0o755); err != nil {
		return d, err
	}
	return d, p.command(r, "kubelet", tree)
}

func (p *preparer) cniDeb(_ release, tree string) (deb, error) {
	bin := p.Bin(plugins.name, plugins.version)
	commands, err := os.ReadDir(bin)
	if err != nil {
		return deb{}, err
	}
	for _, f := range commands {
		if f.Name() == "sample" { // the plugins' own template for authors
			continue
		}
		if err := copyFile(filepath.Join(bin, f.Name()), filepath.Join(tree, "opt/cni/bin", f.Name()), 0o755); err != nil {
			return deb{}, err
		}
	}
	return deb{name: "kubernetes-cni", version: plugins.version + revision}, nil
}

func (p *preparer) command(r release, name, tree string) error {
	return copyFile(p.kubernetesCommand(r, name), filepath.Join(tree, "usr/bin", name), 0o755)
}
