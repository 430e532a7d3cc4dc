// Command flannelcni stands in for flannel's CNI plugin, whose module the Go proxy does not serve. It does what that plugin does
// for IPv4: reads the subnet that flanneld wrote and delegates to the bridge and host-local plugins. The delegate's configuration
// is kept per container, because a DEL must name the network of its ADD even when the subnet has changed since.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	subnetFile = "/run/flannel/subnet.env"
	stateDir   = "/var/lib/cni/flannel"
)

func main() {
	err := run(os.Getenv("CNI_COMMAND"))
	if err == nil {
		return
	}
	// Code 11 of the CNI specification: try again later. The runtime does, until flanneld has its lease.
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"cniVersion": "1.0.0", "code": 11, "msg": err.Error()})
	os.Exit(1)
}

func run(command string) error {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	state := filepath.Join(stateDir, filepath.Base(os.Getenv("CNI_CONTAINERID")))
	switch command {
	case "VERSION":
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"cniVersion": "1.0.0", "supportedVersions": []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0"}})
	case "ADD":
		text, err := os.ReadFile(subnetFile)
		if err != nil {
			return err
		}
		conf, err := delegate(input, text)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(stateDir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(state, conf, 0o600); err != nil {
			return err
		}
		return bridge(conf)
	case "CHECK", "DEL":
		conf, err := os.ReadFile(state)
		if errors.Is(err, fs.ErrNotExist) && command == "DEL" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := bridge(conf); err != nil || command == "CHECK" {
			return err
		}
		return os.Remove(state)
	default:
		return fmt.Errorf("CNI_COMMAND %q is not known", command)
	}
}

// delegate turns flannel's network configuration and its subnet file into a configuration of the bridge plugin.
func delegate(input, subnetFile []byte) ([]byte, error) {
	var conf struct {
		CNIVersion string         `json:"cniVersion"`
		Name       string         `json:"name"`
		PrevResult any            `json:"prevResult"`
		Delegate   map[string]any `json:"delegate"`
	}
	if err := json.Unmarshal(input, &conf); err != nil {
		return nil, err
	}
	subnet, err := parseSubnet(subnetFile)
	if err != nil {
		return nil, err
	}
	mtu, err := strconv.Atoi(subnet["FLANNEL_MTU"])
	if err != nil {
		return nil, fmt.Errorf("FLANNEL_MTU: %w", err)
	}
	own, err := netip.ParsePrefix(subnet["FLANNEL_SUBNET"]) // flanneld writes the gateway's address there
	if err != nil {
		return nil, fmt.Errorf("FLANNEL_SUBNET: %w", err)
	}
	out := map[string]any{
		"type": "bridge", "mtu": mtu, "isGateway": true,
		"ipMasq": subnet["FLANNEL_IPMASQ"] == "false",
		"ipam": map[string]any{
			"type":   "host-local",
			"subnet": own.Masked().String(),
			"routes": []map[string]string{{"dst": subnet["FLANNEL_NETWORK"]}},
		},
	}
	for k, v := range conf.Delegate {
		out[k] = v
	}
	out["cniVersion"], out["name"] = conf.CNIVersion, conf.Name
	if conf.PrevResult != nil {
		out["prevResult"] = conf.PrevResult
	}
	return json.Marshal(out)
}

func parseSubnet(text []byte) (map[string]string, error) {
	values := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if k, v, ok := strings.Cut(lines.Text(), "="); ok {
			values[k] = v
		}
	}
	for _, k := range []string{"FLANNEL_NETWORK", "FLANNEL_SUBNET", "FLANNEL_MTU"} {
		if values[k] == "" {
			return nil, fmt.Errorf("%s has no %s", subnetFile, k)
		}
	}
	return values, lines.Err()
}

// bridge hands over to the bridge plugin; what it answers, an error included, is our answer.
func bridge(conf []byte) error {
	for _, dir := range filepath.SplitList(os.Getenv("CNI_PATH")) {
		path := filepath.Join(dir, "bridge")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		plugin := exec.Command(path)
		plugin.Stdin, plugin.Stdout, plugin.Stderr = bytes.NewReader(conf), os.Stdout, os.Stderr
		err := plugin.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		return err
	}
	return fmt.Errorf("no bridge plugin in CNI_PATH %q", os.Getenv("CNI_PATH"))
}
