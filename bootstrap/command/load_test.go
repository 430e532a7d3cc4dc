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
		{"unset", "up help", "kgpu up --help tells about the command"},
	} {
		t.Setenv(inventoryVariable, c.variable)
		if c.variable == "unset" {
			must(t, os.Unsetenv(inventoryVariable))
		}
		flag := *unread[0].(*cli.StringFlag) // which keeps what it read of the variable
		inventoryFlags = []cli.Flag{&flag}
		var said strings.Builder
		app := App("test", Group("", Validate(), Up(), Doctor(), User()))
		app.Writer, app.ErrWriter = &said, io.Discard
		err := app.Run(flagsFirst(app, append([]string{"kgpu"}, strings.Fields(c.typed)...)))
		var usage *reason.UsageError
		if errors.As(err, &usage) {
			said.WriteString(err.Error())
		} else if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if !strings.Contains(said.String(), c.want) {
			t.Errorf("%+v says %s", c, said.String())
		}
	}
}
