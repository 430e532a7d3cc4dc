package inventory

import (
	"reflect"
	"testing"
)

// What an inventory takes of this machine is named, each thing once, and never its value.
func TestUses(t *testing.T) {
	const text = `
ssh: {user: ada, sudoPassword: "${LAB_SUDO}", bastion: {address: 192.0.2.9, user: jump, key: /keys/jump, passphrase: "${JUMP}"}}
proxy: {http: "http://${PROXY_HOST}:3128"}
hosts:
- {address: 192.0.2.1, role: control-plane}
- {address: 192.0.2.2, ssh: {sudoPassword: "file:/secrets/w1", bastion: none, key: /keys/lab, hostKeyPolicy: accept-new}}
- {address: 192.0.2.3, ssh: {bastion: none, key: /keys/lab, hostKeyPolicy: accept-new, knownHosts: /lab/known_hosts}}
`
	env := map[string]string{"HOME": "/home/ada", "PROXY_HOST": "proxy.example", "LAB_SUDO": "hunter2"}
	inv, err := Decode("inventory.yaml", []byte(text), Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	must(t, err)
	const opens, key, known = "opens, here, the private key for", "is the private key, which stays here, for", "is written to, with keys that are not known yet of"
	want := []Use{
		{"${PROXY_HOST}", "its value is part of the inventory, and goes where the inventory puts it", nil},
		{"${LAB_SUDO}", "is given to sudo on", []string{"ada@192.0.2.1", "ada@192.0.2.3"}},
		{"/keys/jump", key, []string{"jump@192.0.2.9"}},
		{"${JUMP}", opens, []string{"jump@192.0.2.9"}},
		{"file:/secrets/w1", "is given to sudo on", []string{"ada@192.0.2.2"}},
		{"/keys/lab", key, []string{"ada@192.0.2.2", "ada@192.0.2.3"}},
		{"~/.ssh/known_hosts, or what ssh_config names", known, []string{"ada@192.0.2.2"}},
		{"/lab/known_hosts", known, []string{"ada@192.0.2.3"}},
	}
	if got := inv.Uses(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestUsesOfAPlainInventory(t *testing.T) {
	inv, err := Decode("inventory.yaml", []byte("hosts: [{address: 192.0.2.1, role: control-plane}]"), Options{})
	if err != nil || len(inv.Uses()) > 0 {
		t.Errorf("%v, %v", inv.Uses(), err)
	}
}
