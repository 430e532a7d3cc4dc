package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cli/browser"
)

// browserPatience is how long a browser may take to come up and ask.
const browserPatience = 30 * time.Second

// Browse opens the user's browser at an address that may be secret. The browser's arguments, which everybody on this machine
// can read, have an address that leads there once. It returns when the browser has asked.
func Browse(ctx context.Context, address string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard // its chatter is not kgpu's
	return browse(ctx, address, browserPatience, browser.OpenURL)
}

// browse has open called with the address that leads to the secret one. open may end at once, or with the browser.
func browse(ctx context.Context, address string, patience time.Duration, open func(once string) error) error {
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
	failed := make(chan error, 1)
	go func() {
		if err := open(fmt.Sprintf("http://%s%s", l.Addr(), path)); err != nil {
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
