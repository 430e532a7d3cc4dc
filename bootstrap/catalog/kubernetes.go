package catalog

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Default is the Kubernetes version of an inventory that names none.
const Default = "1.36"

// APIPort is the port of kubeadm's API servers.
const APIPort = 6443

// Minor is what kgpu knows of a minor version of Kubernetes.
type Minor struct {
	Number int // 36 for Kubernetes 1.36

	// Patch is the patch release of a new cluster if the inventory names only the minor and no host could list its
	// repository. Of an unsupported minor it is the last one.
	Patch int

	EndOfLife  time.Time // last day with fixes, midnight UTC
	KubeadmAPI string    // version of kubeadm's configuration that kgpu writes
}

// firstPublished is the oldest minor with packages on pkgs.k8s.io.
// Source: kubernetes.io/blog/2023/08/15/pkgs-k8s-io-introduction.
const firstPublished = 24

// The minors. Those that had ended by AsOf get no more patches. Final patches and ends of life up to 1.31: kubernetes.io/releases/patch-releases (data/releases/eol.yaml),
// later ones: endoflife.date/kubernetes, which follows the same page. Newest patches: the tags of k8s.io/kubernetes and of k8s.io/api,
// whose v0.36.6 comes with 1.36.6, on the Go module proxy: 1.34.13, 1.35.10, 1.36.6 and 1.37.2 were there on 2026-11-25.
// kubeadm's API versions: kubernetes.io/docs/reference/config-api, v1beta2 since 1.15, v1beta3 since 1.22, v1beta4 since 1.31;
// older ones: cmd/kubeadm/app/apis/kubeadm of k8s.io/kubernetes, where kubeadm 1.6 and 1.7 read v1alpha1 files too.
var minors = map[int]Minor{
	6:  {6, 13, day("2017-11-23"), "v1alpha1"},
	7:  {7, 16, day("2018-04-04"), "v1alpha1"},
	8:  {8, 15, day("2018-07-12"), "v1alpha1"},
	9:  {9, 11, day("2018-09-29"), "v1alpha1"},
	10: {10, 13, day("2019-02-13"), "v1alpha1"},
	11: {11, 10, day("2019-05-01"), "v1alpha2"},
	12: {12, 10, day("2019-07-08"), "v1alpha3"},
	13: {13, 12, day("2019-10-15"), "v1beta1"},
	14: {14, 10, day("2019-12-11"), "v1beta1"},
	15: {15, 12, day("2020-05-06"), "v1beta2"},
	16: {16, 15, day("2020-09-02"), "v1beta2"},
	17: {17, 17, day("2021-01-13"), "v1beta2"},
	18: {18, 20, day("2021-06-18"), "v1beta2"},
	19: {19, 16, day("2021-10-28"), "v1beta2"},
	20: {20, 15, day("2022-02-28"), "v1beta2"},
	21: {21, 14, day("2022-06-28"), "v1beta2"},
	22: {22, 17, day("2022-12-08"), "v1beta3"},
	23: {23, 17, day("2023-02-28"), "v1beta3"},
	24: {24, 17, day("2023-07-28"), "v1beta3"},
	25: {25, 16, day("2023-10-28"), "v1beta3"},
	26: {26, 15, day("2024-02-28"), "v1beta3"},
	27: {27, 16, day("2024-07-16"), "v1beta3"},
	28: {28, 15, day("2024-10-22"), "v1beta3"},
	29: {29, 15, day("2025-02-28"), "v1beta3"},
	30: {30, 14, day("2025-07-15"), "v1beta3"},
	31: {31, 14, day("2025-11-11"), "v1beta4"},
	32: {32, 13, day("2026-02-28"), "v1beta4"},
	33: {33, 13, day("2026-06-28"), "v1beta4"},
	34: {34, 13, day("2026-10-27"), "v1beta4"},
	35: {35, 10, day("2027-02-28"), "v1beta4"},
	36: {36, 3, day("2027-06-28"), "v1beta4"}, // 1.36.6 exists; kgpu is tried with 1.36.3
	37: {37, 2, day("2027-10-28"), "v1beta4"},
}

// tested are the patches, by minor, of which kgpu's lab had made clusters at AsOf.
var tested = map[int]int{23: 17, 35: 4, 36: 3}

const (
	oldestMinor = 6
	newestMinor = 37
)

func newest() Version { return minors[newestMinor].Version() }

// Kubernetes returns what kgpu knows of Kubernetes 1.minor.
func Kubernetes(minor int) (Minor, bool) {
	m, ok := minors[minor]
	return m, ok
}

// Version is the minor's patch release in the catalog.
func (m Minor) Version() Version { return Version{1, m.Number, m.Patch} }

// Tested is the patch release that was tested with kgpu at AsOf; false if none was.
func (m Minor) Tested() (Version, bool) {
	patch, ok := tested[m.Number]
	return Version{1, m.Number, patch}, ok
}

// Supported reports whether the minor gets fixes at the time now.
func (m Minor) Supported(now time.Time) bool { return now.Before(m.EndOfLife.AddDate(0, 0, 1)) }

// Published reports whether pkgs.k8s.io has packages of the minor.
func (m Minor) Published() bool { return m.Number >= firstPublished }

// SupportedMinors lists the minors that get fixes at the time now, newest first: 1.37, 1.36.
func SupportedMinors(now time.Time) []string {
	var out []string
	for n := newestMinor; n >= oldestMinor; n-- {
		if m := minors[n]; m.Supported(now) {
			out = append(out, m.Version().MinorString())
		}
	}
	return out
}

var minorVersion = regexp.MustCompile(`^v?1\.(\d{1,3})$`)

// IsMinor reports whether s is a minor version, such as 1.36.
func IsMinor(s string) bool { return minorVersion.MatchString(s) }

// Resolve turns a minor (1.36) into the catalog's patch release, and checks that an exact version (1.36.3) can exist.
func Resolve(s string) (Version, error) {
	if m := minorVersion.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1])
		minor, err := lookup(n)
		if err != nil {
			return Version{}, err
		}
		return minor.Version(), nil
	}
	v, err := ParseVersion(s)
	if err != nil {
		return Version{}, fmt.Errorf("%q is neither a minor version such as %s nor an exact one such as %s", s, newest().MinorString(), newest())
	}
	if v.Major != 1 {
		return Version{}, fmt.Errorf("Kubernetes %s does not exist", v)
	}
	minor, err := lookup(v.Minor)
	if err != nil {
		return Version{}, err
	}
	if v.Patch > minor.Patch && !minor.Supported(AsOf) {
		return Version{}, fmt.Errorf("Kubernetes %s does not exist: the last %s is %s", v, v.MinorString(), minor.Version())
	}
	return v, nil
}

func lookup(n int) (Minor, error) {
	m, ok := minors[n]
	switch {
	case ok:
		return m, nil
	case n > newestMinor:
		return Minor{}, fmt.Errorf("Kubernetes 1.%d is not known to this kgpu: the newest it knows is %s", n, newest().MinorString())
	default:
		return Minor{}, fmt.Errorf("Kubernetes 1.%d is too old: the oldest kgpu knows is 1.%d, before which the kubelet served at most one GPU, "+
			"by its flag --experimental-nvidia-gpus that the feature gate Accelerators replaced", n, oldestMinor)
	}
}
