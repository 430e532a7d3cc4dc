package command

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// TestLoad holds which inventory is taken, and what is said where there is none.
func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("folder", 0o755))
	for name, cluster := range map[string]string{"inventory.yaml": "usual", "other.yaml": "other", "third.yaml": "third"} {
		text := "cluster: " + cluster + "\nhosts: [{address: 192.0.2.1, name: cp1, role: control-plane}]\n"
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	unread := inventoryFlags
	t.Cleanup(func() { inventoryFlags = unread })
	for _, c := range []struct{ variable, typed, want string }{
		{"unset", "validate", "cluster usual"},
		{"", "validate", "cluster usual"},
		{"other.yaml", "validate", "cluster other"},
		{"other.yaml", "validate third.yaml", "cluster third"},
		{"other.yaml", "validate -i third.yaml", "cluster third"},
		{"unset", "validate other.yaml", "cluster other, Kubernetes as the cluster has it (a new one gets the newest 1.36 that its hosts' repositories have), 1 host\n"},
		{"unset", "validate -i other.yaml other.yaml", "cluster other"},
		{"unset", "validate -i other.yaml third.yaml", "one inventory at a time, not third.yaml and --inventory other.yaml"},
		{"unset", "validate other.yaml third.yaml", "one inventory at a time"},
		{"unset", "validate -i=", "--inventory has an empty value"},
		{"unset", "validate none.yaml", "there is no inventory none.yaml: `kgpu init ADDRESS…`"},
		{"none.yaml", "validate", "there is no inventory none.yaml"},
		{"none.yaml", "doctor other.yaml", "or name yours: kgpu doctor -i other.yaml"},
		{"none.yaml", "doctor cp1", "or name yours: kgpu doctor -i FILE"},
		{"none.yaml", "user list", "or name yours: kgpu user list -i FILE"},
		{"unset", "validate folder", "folder is a folder: name the inventory itself, such as folder/inventory.yaml"},
		{"unset", "validate -i folder", "folder is a folder"},
		{"unset", "validate cp1", "cp1 is a host of inventory.yaml; the argument of kgpu validate is an inventory"},
		{"unset", "up 192.0.2.1", "kgpu up --limit 192.0.2.1 is for that host"},
		{"unset", "certs renwe", "there is no inventory renwe. Did you mean kgpu certs renew?"},
		{"unset", "certs list", "there is no inventory list: `kgpu init ADDRESS…`"},
		{"unset", "certs -i renwe", "there is no inventory renwe: `kgpu init ADDRESS…`"},
		{"unset", "backup lab.tar.gz", "there is no inventory lab.tar.gz: kgpu backup --file lab.tar.gz writes to that file"},
		{"unset", "backup lab.tgz.age", "kgpu backup --file lab.tgz.age --recipient age1… writes to that file"},
		{"unset", "backup lab.age --recipient age1x", "kgpu backup --file lab.age writes to that file"},
		{"unset", "validate lab.tar.gz", "there is no inventory lab.tar.gz: `kgpu init ADDRESS…`"},
		{"none.yaml", "restore lab.tar.gz", "or name yours: kgpu restore -i INVENTORY lab.tar.gz\n"},
		{"unset", "restore", "which backup? kgpu restore FILE"},
		{"unset", "restore a b", `one backup at a time, not 2: ["a" "b"]`},
		{"unset", "upgrade", "which version? kgpu upgrade VERSION"},
		{"unset", "upgrade 1.37 gpu1", `one version at a time, not 2: ["1.37" "gpu1"]`},
		{"unset", "up help", "kgpu up --help tells about the command"},
	} {
		t.Setenv(inventoryVariable, c.variable)
		if c.variable == "unset" {
			must(t, os.Unsetenv(inventoryVariable))
		}
		flag := *unread[0].(*cli.StringFlag) // which keeps what it read of the variable
		inventoryFlags = []cli.Flag{&flag}
		var said strings.Builder
		app := App("test", Group("", Validate(), Up(), Upgrade(), Backup(), Restore(), Doctor(), Certs(), User()))
		app.Writer, app.ErrWriter = &said, io.Discard
		err := app.Run(flagsFirst(app, append([]string{"kgpu"}, strings.Fields(c.typed)...)))
		var usage *reason.UsageError
		if errors.As(err, &usage) {
			said.WriteString(err.Error() + "\n")
		} else if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if !strings.Contains(said.String(), c.want) {
			t.Errorf("%+v says %s", c, said.String())
		}
	}
}

// A backup has the inventory that is missing: who has one is told how to get at it.
func TestInventoryInABackup(t *testing.T) {
	t.Chdir(t.TempDir())
	for typed, want := range map[string]string{
		"lab.tar.gz": "kgpu restore -i INVENTORY lab.tar.gz. A backup that `kgpu backup` wrote has it, unlike those that control planes make by themselves: " +
			"`tar -xzf lab.tar.gz inventory.yaml`",
		"lab.tar.gz.age":         "`age -d -i KEYFILE lab.tar.gz.age | tar -xzf - inventory.yaml`",
		"--identity key.txt lab": "`age -d -i key.txt lab | tar -xzf - inventory.yaml`",
	} {
		app := App("test", Group("", Restore()))
		app.Writer, app.ErrWriter = io.Discard, io.Discard
		if err := app.Run(append([]string{"kgpu", "restore", "-i", "none.yaml"}, strings.Fields(typed)...)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", typed, err)
		}
	}
}
