package prepare

import "strings"

// cudaReleases are the toolkits that hosts of the lab get or may ask for.
var cudaReleases = []string{"12.9", "13.0", "13.1", "13.2"}

// toolkits stand in for CUDA and cuDNN: a compiler that only tells its version, and the links that the originals make.
func toolkits() []standIn {
	var all []standIn
	for _, release := range cudaReleases {
		d := driver{version: release} // for @VERSION@
		all = append(all, standIn{"cuda-toolkit-" + strings.ReplaceAll(release, ".", "-"), release + ".1-1", nil, "", []part{
			embedded("files/nvcc.sh", "usr/local/cuda-"+release+"/bin/nvcc", 0o755, d),
			embedded("files/cuda-toolkit.postinst", "DEBIAN/postinst", 0o755, d), embedded("files/cuda-toolkit.prerm", "DEBIAN/prerm", 0o755, d),
		}})
	}
	for _, major := range []string{"12", "13"} {
		all = append(all, standIn{"cudnn9-cuda-" + major, "9.22.0.52-1", nil, "", nil})
	}
	return all
}
