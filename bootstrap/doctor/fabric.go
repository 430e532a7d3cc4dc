package doctor

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// fabricManaged is the fabric that the host's fabric manager sets up; NoFabric if it has nothing to do.
func (s *examinee) fabricManaged() catalog.Fabric {
	switch kind := machine.FabricOf(s.f); {
	case kind == catalog.NVLinkRack:
		return catalog.NoFabric
	case kind == catalog.NoFabric && s.e.Switches > 0:
		return catalog.NVSwitches
	default:
		return kind
	}
}

func fabric(s *examinee) []string {
	kind := s.fabricManaged()
	if kind == catalog.NoFabric || s.cards == 0 || s.f.NVIDIA.Loaded == "" || !s.answered {
		return nil
	}
	u, ok := s.e.Units["nvidia-fabricmanager"]
	switch {
	case !ok:
		return []string{fmt.Sprintf("there are %s, and no fabric manager", kind)}
	case u.State != "active":
		return append([]string{"nvidia-fabricmanager is " + u.State}, u.Log...)
	}
	if _, ok := s.f.Packages["nvlsm"]; !ok && kind == catalog.NVLinkSwitches {
		return []string{fmt.Sprintf("there are %s, and no nvlsm", kind)}
	}
	for name, p := range s.f.Packages {
		if !strings.HasPrefix(name, "nvidia-fabricmanager") {
			continue
		}
		version, _, _ := strings.Cut(p.Version[strings.IndexByte(p.Version, ':')+1:], "-")
		if version != s.f.NVIDIA.Loaded {
			return []string{fmt.Sprintf("%s is %s, the driver is %s", name, version, s.f.NVIDIA.Loaded)}
		}
	}
	return nil
}

func fabricIncomplete(s *examinee) []string {
	if s.cards == 0 {
		return nil
	}
	return s.f.NVIDIA.FabricNotReady()
}

func fabricNeedless(s *examinee) []string {
	u := s.e.Units["nvidia-fabricmanager"]
	if s.fabricManaged() != catalog.NoFabric || u.State != "failed" {
		return nil
	}
	return append([]string{"nvidia-fabricmanager has failed, and there is no NVSwitch"}, u.Log...)
}
