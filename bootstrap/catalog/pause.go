package catalog

// pauseTags are the pause images that kubeadm wants, from the minor where each one begins.
// Source: PauseVersion in kubernetes/cmd/kubeadm/app/constants/constants.go of each minor; before 1.12 defaultSandboxImage in
// pkg/kubelet/dockershim/docker_sandbox.go.
var pauseTags = []struct {
	since int
	tag   string
}{
	{36, "3.10.2"}, {34, "3.10.1"}, {31, "3.10"}, {26, "3.9"}, {25, "3.8"}, {24, "3.7"}, {23, "3.6"}, {22, "3.5"},
	{21, "3.4.1"}, {18, "3.2"}, {10, "3.1"}, {6, "3.0"},
}

// Pause is the tag of registry.k8s.io/pause for a minor.
func (m Minor) Pause() string {
	for _, p := range pauseTags {
		if m.Number >= p.since {
			return p.tag
		}
	}
	return ""
}
