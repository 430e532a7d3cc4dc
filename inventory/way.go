package inventory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Way is how a command line says that new hosts are reached. What is empty is left to the inventory, ssh_config and the defaults.
type Way struct {
	User, Key    string
	SudoPassword string // a reference: ${NAME} or file:PATH
	AcceptNew    bool   // trust the keys of hosts that nobody here knows, and pin them in the inventory
}

// Draft is the way as the inventory says it: paths are absolute, or begin at the home directory.
func (w Way) Draft() (DraftSSH, error) {
	s := DraftSSH{User: w.User, Key: w.Key, SudoPassword: w.SudoPassword}
	var err error
	if s.Key != "" {
		if s.Key, err = portable(s.Key); err != nil {
			return s, err
		}
	}
	if s.SudoPassword == "" {
		return s, nil
	}
	if _, err := ParseSecret(s.SudoPassword); err != nil {
		return s, &reason.UsageError{Message: "--sudo-password " + err.Error()}
	}
	if file, ok := strings.CutPrefix(s.SudoPassword, "file:"); ok {
		file, err = portable(file)
		s.SudoPassword = "file:" + file
	}
	return s, err
}

// portable is the path of a file here as it can stand in an inventory that is anywhere.
func portable(path string) (string, error) {
	if strings.HasPrefix(path, "~/") {
		return path, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if home, err := os.UserHomeDir(); err == nil {
		if below, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~/" + below, nil
		}
	}
	return path, nil
}

// Template is an inventory with what is said for all hosts, and with one that there is not. What is wrong with that is the command
// line's.
func Template(path, cluster string, ssh DraftSSH, now time.Time) (*Inventory, error) {
	draft := Draft{
		Cluster: cluster, Version: catalog.Default, Network: Weave, Runtime: Docker, SSH: ssh,
		Hosts: []DraftHost{{Address: "192.0.2.1", Role: ControlPlane}}, // an address for documentation: RFC 5737
	}
	inv, err := Decode(path, draft.Text(), Options{Now: now})
	if wrong, ok := errors.AsType[Errors](err); ok {
		var said []string
		for _, p := range wrong {
			said = append(said, p.Path+": "+p.Message)
		}
		return nil, &reason.UsageError{Message: strings.Join(said, "\n")}
	}
	return inv, err
}
