package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cli/browser"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// OpenOptions are what OpenNotebook, StopNotebook and OpenDashboard need beyond what all stories need.
type OpenOptions struct {
	Port  int                                         // of this machine, which leads there; 0: a free one
	JSON  bool                                        // an object for programs, without the token
	Admin bool                                        // of the dashboard: with all rights
	Start string                                      // the command that starts a notebook that was stopped
	Out   io.Writer                                   // hears where it is
	Open  func(ctx context.Context, url string) error // opens a browser; nil: the user does

	port uint16 // of every node, that leads there without encryption; zero: none does
}

// OpenNotebook tells how the notebook is opened, and leads there until ctx ends: a port of the nodes may, too, and without
// encryption. One that was stopped is started.
func OpenNotebook(ctx context.Context, o session.Options, d OpenOptions) error {
	return atNotebook(ctx, o, "start\n", func(c *Cluster, said notebookSaid) error {
		switch {
		case said.ready == 0 && strings.Contains(said.waits, "Insufficient "):
			return &reason.Error{ID: reason.NotebookNoCard, Host: c.AdminPlane().ID(), Doing: "opening the notebook", Detail: said.waits,
				Advice: "`kgpu status` says which pods have GPUs: when one ends, `kgpu notebook` opens it; `kgpu notebook --stop` has it wait no longer"}
		case said.ready == 0:
			return noNotebook(c, strings.TrimSuffix("the notebook is not ready: "+said.waits, ": "))
		}
		d.port = said.port
		return c.tunnelTo(ctx, d, "the notebook", said.service, func(at string) string { return notebookURL(at, said.token) }, "")
	})
}

// StopNotebook has the notebook give its card back: it has no pod until OpenNotebook starts it again.
func StopNotebook(ctx context.Context, o session.Options, d OpenOptions) error {
	return atNotebook(ctx, o, "stop\n", func(c *Cluster, said notebookSaid) error {
		if said.pods > 0 {
			return noNotebook(c, "its pod does not end")
		}
		if d.JSON {
			return json.NewEncoder(d.Out).Encode(struct {
				Stopped bool `json:"stopped"`
			}{true})
		}
		return report.PrintStopped(d.Out, d.Start)
	})
}

// notebookSaid is what scripts/access/notebook.sh tells.
type notebookSaid struct {
	service, token string
	waits          string // why its pod has no node
	ready, pods    uint64
	port           uint16
}

// atNotebook asks for the notebook, and for a change of it before, and hands on what is there.
func atNotebook(ctx context.Context, o session.Options, change string, then func(*Cluster, notebookSaid) error) error {
	if o.Inventory.Notebook.Framework == catalog.NoFramework {
		return &reason.UsageError{Message: "there is no notebook: the inventory says notebook: {framework: none}. Take that out, then `kgpu up`"}
	}
	c, err := enter(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	text, err := c.answers(ctx, "notebook", change)
	if err != nil {
		return err
	}
	said := notebookSaid{service: text["service"], token: text["token"], waits: printable.Short(strings.TrimSpace(text["waits"]), 300)}
	var wrong [3]error
	said.ready, wrong[0] = strconv.ParseUint(cmp.Or(text["ready"], "0"), 10, 32)
	said.pods, wrong[1] = strconv.ParseUint(cmp.Or(text["pods"], "0"), 10, 32)
	said.port, wrong[2] = nodePort(text["port"])
	switch {
	case errors.Join(wrong[:]...) != nil:
		return c.misunderstood("notebook")
	case said.service == "" || said.token == "":
		return noNotebook(c, "there is no notebook")
	}
	return then(c, said)
}

func noNotebook(c *Cluster, detail string) error {
	return &reason.Error{ID: reason.NotebookFailed, Host: c.AdminPlane().ID(), Doing: "opening the notebook", Detail: detail,
		Advice: "`kgpu smoke` deploys it and opens it, `kgpu up` does what is missing before; `kubectl -n kgpu-notebook describe pods` says why it is not ready"}
}

// tunnelTo passes a port of this machine on to a service of the cluster, which every node knows, until ctx ends.
func (c *Cluster) tunnelTo(ctx context.Context, d OpenOptions, what, service string, open func(at string) string, token string) error {
	at, err := serviceAddress(service)
	if err != nil {
		return c.misunderstood(what)
	}
	l, err := listen(d.Port)
	if err != nil {
		return err
	}
	defer l.Close()
	served, end := context.WithCancel(ctx)
	defer end()
	forwarded := make(chan error, 1)
	go func() { forwarded <- c.forward(served, l, c.AdminPlane().ID(), at) }()
	here := l.Addr().String()
	if err := d.show(ctx, what, here, open(here), token); err != nil {
		end()
		<-forwarded
		return err
	}
	return <-forwarded
}

// show tells where it is. Programs are not told secrets.
func (d OpenOptions) show(ctx context.Context, what, at, open, token string) error {
	if d.JSON {
		return json.NewEncoder(d.Out).Encode(struct {
			URL    string `json:"url"`
			Tunnel bool   `json:"tunnel"` // it ends with this program
		}{"http://" + at + "/", true})
	}
	if err := report.PrintOpened(d.Out, what, open, token, d.port); err != nil || d.Open == nil {
		return err
	}
	if err := d.Open(ctx, open); err != nil {
		return report.PrintNoBrowser(d.Out, err)
	}
	return nil
}

// browserPatience is how long a browser may take to come up and ask.
const browserPatience = 30 * time.Second

// Browse opens the user's browser at an address that may be secret. The browser's arguments, which everybody on this machine
// can read, name a file that only the user can read. What is in it leads to the address once, and as long as this runs. It
// returns when the browser has asked.
func Browse(ctx context.Context, address string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard // its chatter is not kgpu's
	return browse(ctx, address, browserPatience, browser.OpenFile)
}

// browse has open called with the file that leads to the secret address, as Jupyter does. open may end at once, or with the
// browser. Who is at the other end of the connection is not asked: Linux would tell, macOS would not, and a browser may run in a
// sandbox, or on the other side of WSL.
func browse(ctx context.Context, address string, patience time.Duration, open func(file string) error) error {
	l, err := listen(0)
	if err != nil {
		return err
	}
	path := "/" + rand.Text()
	asked := make(chan struct{})
	first := sync.OnceFunc(func() { close(asked) })
	var once sync.Once
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := ""
		if r.URL.Path == path {
			once.Do(func() { to = address })
		}
		if to == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, to, http.StatusFound)
		first()
	})}
	go func() { _ = server.Serve(l) }() // ends with Shutdown
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	}()
	file, remove, err := redirection(fmt.Sprintf("http://%s%s", l.Addr(), path))
	if err != nil {
		return err
	}
	defer remove()
	failed := make(chan error, 1)
	go func() {
		if err := open(file); err != nil {
			failed <- err
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-asked:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errors.New("none came up in time")
	}
}

// redirection writes a page that leads to a URL, for the user alone. Its folder is in the home directory, and its name does not
// begin with a dot: browsers that are snaps can read nothing else. A kgpu that is killed leaves a page that leads nowhere.
func redirection(url string) (file string, remove func(), err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(home, "kgpu-browser-") // of mode 0700
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	file = filepath.Join(dir, "open.html")
	page := fmt.Sprintf("<!doctype html>\n<meta charset=utf-8>\n<meta name=referrer content=no-referrer>\n"+
		"<meta http-equiv=refresh content=\"0; url=%[1]s\">\n<title>kgpu</title>\n<a href=\"%[1]s\">open</a>\n", html.EscapeString(url))
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return file, remove, nil
}
