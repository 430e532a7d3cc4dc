package prepare

// subnetManager is nvlsm, which only NVIDIA's repository has.
func subnetManager() standIn {
	return standIn{"nvlsm", "2025.10.11-1", nil, "", []part{embedded("files/nvlsm.sh", "usr/bin/nvlsm", 0o755, driver{})}}
}

// diagnostics is infiniband-diags, with the one program of it that the fabric manager's start wants.
func diagnostics() standIn {
	return standIn{"infiniband-diags", "56.1-1", nil, "", []part{embedded("files/ibstat.sh", "usr/sbin/ibstat", 0o755, driver{})}}
}

// imex is the package of this name for a driver.
func imex(name, version string, d driver) standIn {
	return standIn{name, version, nil, "nvidia-lab-imex", []part{
		embedded("files/nvidia-imex.sh", "usr/bin/nvidia-imex", 0o755, d),
		embedded("files/nvidia-imex.service", "usr/lib/systemd/system/nvidia-imex.service", 0o644, d),
		embedded("files/nvidia-units.postinst", "DEBIAN/postinst", 0o755, d),
	}}
}
