package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// insideAPI is where the API server is, as the control plane sees the network.
const insideAPI = "10.0.0.10:6443"

// apiHost is a control plane with an API server that only it can reach, and with programs of its own.
type apiHost struct {
	event.Recorder
	server *sshtest.Server
	api    *httptest.Server
	bin    string // folder with its programs
	conf   string // path of its admin.conf
	key    string // the administrator's, PEM
	closed atomic.Bool
	sftp   sshtest.Handler // nil: one that has the admin.conf
	dialed atomic.Int64    // how often something was reached through SSH
}

func newAPIHost(t *testing.T) (*apiHost, session.Options) {
	t.Helper()
	h := &apiHost{bin: t.TempDir(), conf: filepath.Join(t.TempDir(), "admin.conf")}
	authority := clustertest.NewAuthority(t)
	h.api = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "the API at %s\n", r.URL.Path) }))
	key := clustertest.NewKey(t)
	serving := authority.Issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 10)},
	}, key.Public())
	h.api.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{serving}, PrivateKey: key}}}
	h.api.StartTLS()
	t.Cleanup(h.api.Close)
	admin := authority.Admin(t, "https://"+insideAPI)
	h.key = string(admin.Key)
	put(t, h.conf, clustertest.AdminConf(t, admin))
	local := sshtest.Local("PATH=" + h.bin + ":" + os.Getenv("PATH"))
	h.server = sshtest.Listen(t, sshtest.Config{
		Exec: func(e *sshtest.Exec) int {
			if strings.Contains(e.Line, "sftp-server") {
				if h.sftp != nil {
					return h.sftp(e)
				}
				return clustertest.ServeFile(e, h.conf)
			}
			e.Line = h.first(e.Line)
			e.Stdin = &firstRead{Reader: e.Stdin, change: h.first}
			if strings.Contains(e.Line, "bash -s") {
				e.Stdin = h.inFront(e.Stdin)
			}
			return local(e)
		},
		Dial: func(network, address string) (net.Conn, error) {
			if h.closed.Load() {
				return nil, errors.New("prohibited")
			}
			h.dialed.Add(1)
			if address == insideAPI {
				address = h.api.Listener.Addr().String()
			}
			return net.Dial(network, address)
		},
	})
	cp := h.server.Host()
	cp.Name, cp.Role, cp.PrivateAddress = "cp1", inventory.ControlPlane, netip.MustParseAddr("10.0.0.10")
	dir := t.TempDir()
	return h, session.Options{
		Inventory: &inventory.Inventory{Path: filepath.Join(dir, "inventory.yaml"), Cluster: "lab", Hosts: []inventory.Host{cp}, Notebook: inventory.Notebook{Framework: "tensorflow"}},
		Run:       "r", Events: h,
	}
}

// first lets the host's programs come before those of the same name that this machine has where packages put theirs.
func (h *apiHost) first(script string) string {
	return strings.ReplaceAll(script, "PATH=/usr/", "PATH="+h.bin+":/usr/")
}

// firstRead changes what is read first: a script, and what may follow it.
type firstRead struct {
	io.Reader
	change  func(string) string
	changed bool
	rest    string // of what was read first
}

func (r *firstRead) Read(p []byte) (n int, err error) {
	if !r.changed {
		r.changed = true
		first := make([]byte, 1<<16)
		n, err = r.Reader.Read(first)
		r.rest = r.change(string(first[:n]))
		if err != nil && r.rest == "" {
			return 0, err
		}
	}
	if r.rest != "" {
		n = copy(p, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	return r.Reader.Read(p)
}

// inFront lets a script find the host's programs before the machine's: it begins with an environment of its own.
func (h *apiHost) inFront(script io.Reader) io.Reader {
	start := make([]byte, 1024)
	n, _ := io.ReadFull(script, start) // a script that is shorter has ended
	return io.MultiReader(strings.NewReader(strings.Replace(string(start[:n]), "PATH=", "PATH="+h.bin+":", 1)), script)
}

// program puts a shell script among the host's programs.
func (h *apiHost) program(t *testing.T, name, script string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(h.bin, name), []byte("#!/bin/bash\n"+script), 0o755))
}

// said is what the host's events tell a person.
func (h *apiHost) said() string {
	var b strings.Builder
	for _, e := range h.Events() {
		fmt.Fprintf(&b, "%s %s\n", e.Kind, e.Text)
	}
	return b.String()
}

// askVersion asks the API server of a kubeconfig, as kubectl would.
func askVersion(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	a, err := kubeconfig.Parse(data)
	if err != nil {
		return "", err
	}
	config, err := a.TLS()
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	answer, err := client.Get(a.Server + "/version")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// notices is a writer that tells when something was written.
type notices struct {
	all   bytes.Buffer
	wrote chan struct{}
}

func (n *notices) String() string { return n.all.String() }

func (n *notices) Write(p []byte) (int, error) {
	defer func() {
		select {
		case n.wrote <- struct{}{}:
		default:
		}
	}()
	return n.all.Write(p)
}

func TestFetchKubeconfig(t *testing.T) {
	h, o := newAPIHost(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "mine"))
	var out bytes.Buffer
	must(t, Kubeconfig(t.Context(), o, KubeconfigOptions{Out: &out}))
	path := filepath.Join(filepath.Dir(o.Inventory.Path), "lab.kubeconfig")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || !strings.Contains(out.String(), path) {
		t.Errorf("%v, %v; said %s", info, err, out.String())
	}
	if sourceOf(path) == "" {
		t.Error("up would fetch it again")
	}
	// This machine has no API server at the address of the host.
	if said := h.said(); !strings.Contains(said, "warning the API server cannot be reached from here") || !strings.Contains(said, "kgpu kubectl") {
		t.Errorf("said %s", said)
	}

	out.Reset()
	must(t, Kubeconfig(t.Context(), o, KubeconfigOptions{File: "-", Out: &out}))
	if a, err := kubeconfig.Parse(out.Bytes()); err != nil || a.Context != "lab" || string(a.Key) != h.key {
		t.Errorf("printed %s, %v", out.String(), err)
	}

	for range 2 {
		out.Reset()
		must(t, Kubeconfig(t.Context(), o, KubeconfigOptions{Merge: true, Out: &out}))
	}
	if data, err := os.ReadFile(os.Getenv("KUBECONFIG")); err != nil || !strings.Contains(string(data), "current-context: lab") || !strings.Contains(out.String(), "--context lab") {
		t.Errorf("%v; said %s; merged\n%s", err, out.String(), data)
	}
	must(t, os.WriteFile(os.Getenv("KUBECONFIG"), []byte("clusters: [{name: lab, cluster: {server: x}}]\n"), 0o600))
	if err := Kubeconfig(t.Context(), o, KubeconfigOptions{Merge: true, Out: &out}); !errors.Is(err, &reason.Error{ID: reason.KubeconfigConflict}) {
		t.Error(err)
	}
	if err := Kubeconfig(t.Context(), o, KubeconfigOptions{File: filepath.Join(path, "x"), Out: &out}); !errors.Is(err, &reason.Error{ID: reason.KubeconfigUnwritable}) {
		t.Error(err)
	}
	must(t, os.Remove(h.conf))
	if err := Kubeconfig(t.Context(), o, KubeconfigOptions{Out: &out}); !errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		t.Error(err)
	}
	if strings.Contains(h.said(), base64.StdEncoding.EncodeToString([]byte(h.key))) {
		t.Error("an event has the key")
	}
}

// The tunnel leads to the API server, which is known by its name inside, and goes with its kubeconfig.
func TestTunnel(t *testing.T) {
	_, o := newAPIHost(t)
	ctx, end := context.WithCancel(t.Context())
	out := &notices{wrote: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() { ended <- Kubeconfig(ctx, o, KubeconfigOptions{Tunnel: true, Out: out}) }()
	select {
	case <-out.wrote:
	case err := <-ended:
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(o.Inventory.Path), "lab-tunnel.kubeconfig")
	for range 2 {
		if got, err := askVersion(path); err != nil || got != "the API at /version\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// localKubectl is a program that tells what it was given, and ends with 7.
func localKubectl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	script := "#!/bin/bash\nprintf '<%s>' \"$@\"\ncat\nfirst=${KUBECONFIG%%:*}\ngrep -o 'server: .*' \"$first\"\nstat -c %a \"$first\"\n" +
		"[[ $KUBECONFIG != *:* ]] || ! grep key-data \"$first\"\ngrep -c key-data \"${KUBECONFIG##*:}\"\necho trouble >&2\nexit 7\n"
	must(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

func TestKubectl(t *testing.T) {
	run := func(o session.Options, program string, args ...string) (out, errs string, err error) {
		var stdout, stderr bytes.Buffer
		err = Kubectl(t.Context(), o, KubectlOptions{Program: program, Args: args, Stdin: strings.NewReader("input\n"), Stdout: &stdout, Stderr: &stderr})
		return stdout.String(), stderr.String(), err
	}
	wants := func(t *testing.T, err error, status int) {
		t.Helper()
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Status != status {
			t.Errorf("%v, want the exit status %d", err, status)
		}
	}
	t.Run("through SSH", func(t *testing.T) {
		h, o := newAPIHost(t)
		t.Setenv("TMPDIR", t.TempDir())
		out, errs, err := run(o, localKubectl(t), "get", "a b")
		wants(t, err, 7)
		if !strings.HasPrefix(out, "<get><a b>input\nserver: https://127.0.0.1:") || !strings.HasSuffix(out, "\n600\n1\n") || errs != "trouble\n" {
			t.Errorf("said %q and %q", out, errs)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
			t.Errorf("left %q", left)
		}
		if _, err := os.Stat(KubeconfigPath(o.Inventory)); err != nil || h.dialed.Load() == 0 {
			t.Errorf("%v; the API was reached %d times", err, h.dialed.Load())
		}
	})
	t.Run("directly", func(t *testing.T) {
		h, o := newAPIHost(t)
		data, err := os.ReadFile(h.conf)
		must(t, err)
		a, err := kubeconfig.Parse(data)
		must(t, err)
		a.Server, a.TLSServerName = h.api.URL, "10.0.0.10"
		text, err := a.Encode()
		must(t, err)
		must(t, atomicfile.Write(KubeconfigPath(o.Inventory), text, 0o600))
		out, _, err := run(o, localKubectl(t))
		wants(t, err, 7)
		if !strings.Contains(out, "server: "+h.api.URL) || h.server.Accepted() != 0 {
			t.Errorf("said %q after %d SSH connections", out, h.server.Accepted())
		}
	})
	there := "printf '<%s>' \"$@\"; cat; echo trouble >&2; exit 9\n"
	args := []string{"get", "a b", "", `"';$(id)` + "\n*", "-o", "é"}
	const printed = "<--kubeconfig></etc/kubernetes/admin.conf><get><a b><><\"';$(id)\n*><-o><é>input\n"
	t.Run("no kubectl here", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", there)
		out, errs, err := run(o, "", args...)
		wants(t, err, 9)
		if out != printed || errs != "trouble\n" {
			t.Errorf("said %q and %q, want %q", out, errs, printed)
		}
		for _, line := range h.server.Lines() {
			if strings.Contains(line, "id)") {
				t.Errorf("an argument is in the command line: %s", line)
			}
		}
	})
	t.Run("SSH lets nothing through", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.closed.Store(true)
		h.program(t, "kubectl", there)
		out, _, err := run(o, localKubectl(t), args...)
		wants(t, err, 9)
		if out != printed || !strings.Contains(h.said(), "warning kubectl runs there") {
			t.Errorf("said %q; %s", out, h.said())
		}
	})
	t.Run("it ends well", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", "echo $#\n")
		if out, _, err := run(o, ""); err != nil || out != "2\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// kubectlOfNotebook answers scripts/access/notebook.sh.
const kubectlOfNotebook = `case "$*" in
*' get service notebook '*) printf 'service=%s\nport=PORT\n' "SERVICE" ;;
*' get deployment notebook '*spec.replicas*) echo -n 1 ;;
*' get deployment notebook '*) echo ready=READY ;;
*' get pods '*len*) echo -n PODS ;;
*' get pods '*) echo -n 'WAITS' ;;
*' scale '*) ;;
*' get secret notebook '*) echo token=dG9rJmVu ;;
*) exit 1 ;;
esac
`

func TestOpenNotebook(t *testing.T) {
	notebook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "notebook %s", r.URL.Query().Get("token"))
	}))
	t.Cleanup(notebook.Close)
	// At the port of the node, whoever is on the way may answer.
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("asked for %s without SSH", r.URL)
		_, _ = w.Write([]byte(`{"version": "7.0.0"}`))
	}))
	t.Cleanup(stranger.Close)
	_, port, err := net.SplitHostPort(stranger.Listener.Addr().String())
	must(t, err)
	answer := func(ready string) string {
		return strings.NewReplacer("SERVICE", notebook.Listener.Addr().String(), "PORT", port, "READY", ready, "PODS", ready, "WAITS", "").Replace(kubectlOfNotebook)
	}
	t.Run("through SSH", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", answer("1"))
		ctx, end := context.WithCancel(t.Context())
		out := &notices{wrote: make(chan struct{}, 1)}
		opened, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- OpenNotebook(ctx, o, OpenOptions{Out: out, Open: func(_ context.Context, url string) error { opened <- url; return nil }})
		}()
		var url string
		select {
		case url = <-opened:
		case err := <-ended:
			t.Fatal(err)
		}
		got, err := http.Get(url)
		must(t, err)
		body, err := io.ReadAll(got.Body)
		got.Body.Close()
		if err != nil || string(body) != "notebook tok&en" {
			t.Errorf("%q, %v at %s", body, err, url)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if said := out.String(); !strings.Contains(said, url) || !strings.Contains(said, "Ctrl-C") || !strings.Contains(said, "Port "+port+" of every node leads there, too, in plain HTTP") || strings.Contains(h.said(), "tok") {
			t.Errorf("said %s; events %s", said, h.said())
		}
	})
	t.Run("for programs", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", answer("1"))
		ctx, end := context.WithCancel(t.Context())
		out := &notices{wrote: make(chan struct{}, 1)}
		ended := make(chan error, 1)
		go func() { ended <- OpenNotebook(ctx, o, OpenOptions{Out: out, JSON: true}) }()
		<-out.wrote
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if said := out.String(); !strings.HasPrefix(said, `{"url":"http://127.0.0.1:`) || !strings.HasSuffix(said, "/\",\"tunnel\":true}\n") {
			t.Errorf("said %s", said)
		}
	})
	for name, script := range map[string]string{"not ready": answer("0"), "not there": "exit 0\n"} {
		t.Run(name, func(t *testing.T) {
			h, o := newAPIHost(t)
			h.program(t, "kubectl", script)
			err := OpenNotebook(t.Context(), o, OpenOptions{Out: io.Discard})
			var e *reason.Error
			if !errors.As(err, &e) || e.ID != reason.NotebookFailed || !strings.Contains(e.AdviceLine(), "kgpu smoke") {
				t.Error(err)
			}
		})
	}
	t.Run("no GPU is free", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", strings.Replace(answer("0"), "echo -n ''", "echo '0/1 nodes are available: 1 Insufficient nvidia.com/gpu.'", 1))
		err := OpenNotebook(t.Context(), o, OpenOptions{Out: io.Discard})
		var e *reason.Error
		if !errors.As(err, &e) || e.ID != reason.NotebookNoCard || !strings.Contains(e.Detail, "0/1 nodes") || !strings.Contains(e.AdviceLine(), "kgpu status") {
			t.Error(err)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		for script, want := range map[string]reason.ID{answer("0"): "", "exit 0\n": reason.NotebookFailed, "exit 1\n": reason.APIUnreachable} {
			h, o := newAPIHost(t)
			h.program(t, "kubectl", script)
			var out strings.Builder
			err := StopNotebook(t.Context(), o, OpenOptions{Out: &out, Start: "kgpu notebook -i x"})
			if want == "" && (err != nil || !strings.Contains(out.String(), "`kgpu notebook -i x` starts it")) || want != "" && !errors.Is(err, &reason.Error{ID: want}) {
				t.Errorf("%q, %v; want %s", out.String(), err, want)
			}
		}
	})
	t.Run("the API does not answer", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", "echo refused >&2; exit 1\n")
		err := OpenNotebook(t.Context(), o, OpenOptions{Out: io.Discard})
		var e *reason.Error
		if !errors.As(err, &e) || e.ID != reason.APIUnreachable || !strings.Contains(e.Stderr, "refused") {
			t.Error(err)
		}
	})
	t.Run("none is wanted", func(t *testing.T) {
		h, o := newAPIHost(t)
		o.Inventory.Notebook.Framework = "none"
		var usage *reason.UsageError
		if err := OpenNotebook(t.Context(), o, OpenOptions{Out: io.Discard}); !errors.As(err, &usage) || h.server.Accepted() != 0 {
			t.Error(err)
		}
	})
}

func TestOpenDashboard(t *testing.T) {
	h, o := newAPIHost(t)
	h.program(t, "kubectl", `case "$*" in
*' get service headlamp '*) echo service=10.96.0.7:80 ;;
*' create token admin --duration=8h') printf 'the.token' ;;
*) exit 1 ;;
esac
`)
	ctx, end := context.WithCancel(t.Context())
	out := &notices{wrote: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	shown := func(ctx context.Context, url string) error { end(); return nil }
	go func() { ended <- OpenDashboard(ctx, o, OpenOptions{Out: out, Admin: true, Open: shown}) }()
	must(t, <-ended)
	if said := out.String(); !strings.Contains(said, "http://127.0.0.1:") || !strings.Contains(said, "\nthe.token\n") || strings.Contains(h.said(), "the.token") {
		t.Errorf("said %s; events %s", said, h.said())
	}
}

// After a reset there is neither a cluster nor its kubectl: every way in says so, and not that the API server is silent.
func TestNothingOpensWithoutACluster(t *testing.T) {
	for name, open := range map[string]func(context.Context, session.Options) error{
		"notebook": func(ctx context.Context, o session.Options) error {
			return OpenNotebook(ctx, o, OpenOptions{Out: io.Discard})
		},
		"dashboard": func(ctx context.Context, o session.Options) error {
			return OpenDashboard(ctx, o, OpenOptions{Out: io.Discard})
		},
		"user list": func(ctx context.Context, o session.Options) error { _, err := Users(ctx, o); return err },
		"kubeconfig": func(ctx context.Context, o session.Options) error {
			return Kubeconfig(ctx, o, KubeconfigOptions{Out: io.Discard})
		},
		"kubectl": func(ctx context.Context, o session.Options) error {
			return Kubectl(ctx, o, KubectlOptions{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
		},
		"kubectl here": func(ctx context.Context, o session.Options) error {
			return Kubectl(ctx, o, KubectlOptions{Program: "kubectl", Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, o := newAPIHost(t)
			must(t, os.Remove(h.conf))
			h.program(t, "kubectl", "echo kubectl: command not found >&2; exit 127\n")
			if err := open(t.Context(), o); !errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
				t.Error(err)
			}
		})
	}
	h, o := newAPIHost(t) // a plugin of kubectl, say, that is not there
	h.program(t, "kubectl", "exit 127\n")
	var exit *ExitError
	if err := Kubectl(t.Context(), o, KubectlOptions{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}); !errors.As(err, &exit) || exit.Status != 127 {
		t.Error(err)
	}
}

// What the browser is started with, which all can read, leads the user alone to the secret address, and once.
func TestBrowse(t *testing.T) {
	const secret = "http://127.0.0.1:1/?token=x"
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{home, filepath.Dir(home)} { // others may pass
		must(t, os.Chmod(dir, 0o755))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(url string) (status int, to string) {
		answer, err := client.Get(url)
		if err != nil { // the server has ended
			return 0, ""
		}
		answer.Body.Close()
		return answer.StatusCode, answer.Header.Get("Location")
	}
	ended := make(chan struct{})
	err := browse(t.Context(), secret, time.Minute, func(file string) error {
		defer close(ended) // some stay as long as the browser does
		if rest, found := strings.CutPrefix(file, home+"/"); !found || strings.HasPrefix(rest, ".") {
			t.Errorf("the browser is started with %s, which a snap cannot read", file)
		}
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		othersReadOnly(t, filepath.Join(home, "theirs"), file)
		page, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(page), "token") {
			t.Errorf("the page is %s, %v", page, err)
		}
		found := regexp.MustCompile(`content="0; url=([^"]+)"`).FindSubmatch(page)
		if found == nil {
			t.Errorf("the page leads nowhere: %s", page)
			return nil
		}
		once := string(found[1])
		for _, guess := range []string{"", filepath.Base(file), filepath.Base(filepath.Dir(file)), "guess"} {
			if status, to := get(once[:strings.LastIndex(once, "/")+1] + guess); status != http.StatusNotFound || to != "" {
				t.Errorf("the guess %q leads to %d %q", guess, status, to)
			}
		}
		if status, to := get(once); status != http.StatusFound || to != secret {
			t.Errorf("it leads to %d %q", status, to)
		}
		if status, to := get(once); status == http.StatusFound || to != "" {
			t.Errorf("the second time it leads to %d %q", status, to)
		}
		return nil
	})
	if <-ended; err != nil {
		t.Error(err)
	}
	nothingLeft := func(after string) {
		if left, err := filepath.Glob(filepath.Join(home, "kgpu-*")); err != nil || len(left) > 0 {
			t.Errorf("after %s there are %q, %v", after, left, err)
		}
	}
	nothingLeft("a browser that came up")
	none := errors.New("none here")
	if err := browse(t.Context(), secret, time.Minute, func(string) error { return none }); !errors.Is(err, none) {
		t.Error(err)
	}
	if err := browse(t.Context(), secret, time.Nanosecond, func(string) error { return nil }); err == nil {
		t.Error("a browser that never asks is taken for one that does")
	}
	interrupted, end := context.WithCancel(t.Context())
	if err := browse(interrupted, secret, time.Minute, func(string) error { end(); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	nothingLeft("those that did not")
}

// othersReadOnly has another user of this machine read both files, who can read the first alone.
func othersReadOnly(t *testing.T, theirs, mine string) {
	t.Helper()
	if os.Getuid() != 0 {
		return // nobody else can be had
	}
	must(t, os.WriteFile(theirs, nil, 0o644))
	for file, may := range map[string]bool{theirs: true, mine: false} {
		cmd := exec.Command("cat", file)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); (err == nil) != may {
			t.Errorf("another user reads %s: %v, %s", file, err, out)
		}
	}
}
