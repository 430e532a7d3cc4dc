package inventory

import (
	"fmt"
	"maps"
	"slices"

	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// sections lists every mapping of the file with the keys it may have. Each repository and artifact has its own line, a bastion
// stands for any depth.
func sections() map[string][]string {
	return map[string][]string{
		"":                                    names(fileKeys()),
		"kubernetes":                          names(kubernetesKeys()),
		"gpu":                                 names(gpuKeys()),
		"gpu.driver":                          names(driverKeys()),
		"gpu.timeSlicing":                     names(sharingKeys(maxReplicas)),
		"gpu.mps":                             names(sharingKeys(maxMPSShares)),
		"notebook":                            names(notebookKeys()),
		"security":                            names(securityKeys()),
		"backup":                              names(backupKeys()),
		"proxy":                               names(proxyKeys()),
		"repositories":                        names(repositoriesKeys()),
		"repositories.kubernetes":             names(repositoryKeys()),
		"repositories.docker":                 names(repositoryKeys()),
		"repositories.cuda":                   names(repositoryKeys()),
		"repositories.nvidiaContainerToolkit": names(repositoryKeys()),
		"repositories.graphicsDrivers":        names(repositoryKeys()),
		"repositories.criDockerd":             names(artifactKeys()),
		"repositories.calico":                 names(artifactKeys()),
		"images":                              names(imagesKeys()),
		"preflight":                           names(preflightKeys()),
		"timeouts":                            names(timeoutsKeys()),
		"ssh":                                 names(sshKeys()),
		"ssh.bastion":                         names(bastionKeys()),
		"hosts[]":                             names(hostKeys()),
	}
}

// Keys lists every key of the file that has a value of its own: kubernetes.version, hosts[].name. A bastion stands for any depth,
// a host's own ssh for all of its settings.
func Keys() []string {
	all := sections()
	var keys []string
	for section, known := range all {
		for _, key := range known {
			path := join(section, key)
			_, mapping := all[path]
			_, list := all[path+"[]"]
			if !mapping && !list {
				keys = append(keys, path)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func names[T any](ks keys[T]) []string { return slices.Sorted(maps.Keys(ks)) }

// unknownKey says what is wrong with a key that its mapping does not have.
func (d *decoder) unknownKey(key string, known []string) hint {
	if c := nearest.Word(key, known); c != "" {
		return hint{fmt.Sprintf("unknown key %q", key), c}
	}
	if where := d.home(key); where != "" {
		return hint{message: fmt.Sprintf("unknown key %q here: it belongs to %s", key, where)}
	}
	return hint{message: fmt.Sprintf("unknown key %q", key)}
}

// home is the one section that has a key.
func (d *decoder) home(key string) string {
	if d.sections == nil {
		d.sections = sections()
	}
	var found []string
	for section, known := range d.sections {
		if key == "version" && section == "notebook" {
			continue // who says version and nothing else means that of Kubernetes
		}
		if section != "ssh.bastion" && slices.Contains(known, key) {
			found = append(found, section)
		}
	}
	switch {
	case len(found) != 1:
		return ""
	case found[0] == "":
		return "the top of the file"
	}
	return found[0]
}
