package bootstrap

import (
	"go/build"
	"slices"
	"testing"
)

// TestRooms holds what the packages here must not import: stories tell what is done, and leave files, formats and the network to the
// packages below; what only looks knows no story that changes something; a session knows its hosts, and not what is made of them;
// access changes no host; who carries out or shows a graph does not know what its steps are for; what machines are is judged below the
// plan; records are read without a connection and without a plan.
func TestRooms(t *testing.T) {
	const own = "kgpu.dev/kgpu/bootstrap/"
	for folder, strangers := range map[string][]string{
		".": {
			own + "remote", own + "history", own + "records/timeline", own + "access/jupyter", "go.yaml.in/yaml/v3", "golang.org/x/crypto/ssh", "github.com/pkg/sftp",
			"net", "net/http", "net/netip", "net/url", "os/exec", "crypto/rand", "crypto/tls", "crypto/x509",
		},
		"session": {
			own + "access/kubeconfig", own + "preflight", own + "catalog", own + "report", own + "records", "net", "net/http", "os/exec", "go.yaml.in/yaml/v3",
		},
		"look": {
			"kgpu.dev/kgpu/bootstrap", own + "access", own + "remote", own + "run", own + "history", "golang.org/x/crypto/ssh", "net", "net/http", "os/exec",
		},
		"access": {
			own + "run", own + "preflight", own + "records", "go.yaml.in/yaml/v3", "golang.org/x/crypto/ssh",
		},
		"archive":   {own + "facts", own + "plan", own + "remote", own + "session", "kgpu.dev/kgpu/inventory", "kgpu.dev/kgpu/scripts"},
		"graph":     {own + "facts", own + "catalog", own + "plan", "kgpu.dev/kgpu/inventory", "kgpu.dev/kgpu/scripts"},
		"run":       {own + "catalog", own + "plan"},
		"report":    {own + "plan"},
		"manifest":  {own + "graph", own + "plan"},
		"machine":   {own + "graph", own + "plan", own + "preflight", own + "remote", own + "session"},
		"doctor":    {own + "plan", own + "remote", own + "session"},
		"preflight": {own + "plan", own + "remote", own + "session"},
		"status":    {own + "plan", own + "remote", own + "session"},
		"proposal":  {own + "plan"},
		"smoke":     {own + "plan"},
		"records":   {own + "remote", own + "run", own + "plan", own + "access/kubeconfig", own + "access/jupyter", "kgpu.dev/kgpu/scripts", "net", "net/http"},
	} {
		room, err := build.ImportDir(folder, 0)
		must(t, err)
		for _, stranger := range strangers {
			if slices.Contains(room.Imports, stranger) {
				t.Errorf("%s: imports %s", folder, stranger)
			}
		}
	}
}
