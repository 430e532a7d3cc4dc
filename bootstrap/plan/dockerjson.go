package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// mergeDaemonJSON sets what Kubernetes needs in docker's configuration and leaves the rest as it is: the systemd cgroup
// driver, as the kubelet's, and bounded container logs where nobody chose a log driver.
// The reasons are empty when nothing has to change.
func mergeDaemonJSON(have []byte) (merged []byte, reasons []string) {
	config := map[string]any{}
	if len(bytes.TrimSpace(have)) > 0 {
		if err := json.Unmarshal(have, &config); err != nil {
			return have, []string{fmt.Sprintf("/etc/docker/daemon.json cannot be read: %v", err)}
		}
	}
	const driver = "native.cgroupdriver="
	options, _ := config["exec-opts"].([]any)
	if !slices.Contains(options, any(driver+"systemd")) {
		reasons = append(reasons, "docker's cgroup driver is not set to systemd")
		options = slices.DeleteFunc(options, func(o any) bool {
			s, ok := o.(string)
			return ok && len(s) > len(driver) && s[:len(driver)] == driver
		})
		config["exec-opts"] = append(options, driver+"systemd")
	}
	if _, ok := config["log-driver"]; !ok {
		reasons = append(reasons, "docker's container logs have no bound")
		config["log-driver"] = "json-file"
		if _, ok := config["log-opts"]; !ok {
			config["log-opts"] = map[string]any{"max-size": "100m"}
		}
	}
	if len(reasons) == 0 {
		return have, nil
	}
	out, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return have, []string{err.Error()}
	}
	return append(out, '\n'), reasons
}

// nvidiaDaemonJSON makes nvidia docker's default runtime, and leaves the rest as it is: cri-dockerd and the built-in docker
// support know no RuntimeClass but docker's own, and drop CDI devices without a word.
func nvidiaDaemonJSON(have []byte) (merged []byte, reasons []string) {
	config := map[string]any{}
	if err := json.Unmarshal(have, &config); err != nil {
		return have, []string{fmt.Sprintf("/etc/docker/daemon.json cannot be read: %v", err)}
	}
	runtimes, _ := config["runtimes"].(map[string]any)
	if _, ok := runtimes["nvidia"]; ok && config["default-runtime"] == "nvidia" {
		return have, nil
	}
	config["runtimes"] = merge(runtimes, map[string]any{"nvidia": map[string]any{"path": "/usr/bin/nvidia-container-runtime", "args": []any{}}})
	config["default-runtime"] = "nvidia"
	out, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return have, []string{err.Error()}
	}
	return append(out, '\n'), []string{"nvidia is not docker's default runtime"}
}
