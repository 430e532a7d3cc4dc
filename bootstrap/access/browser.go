package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cli/browser"
)

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
