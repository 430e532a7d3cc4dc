package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// browserPatience is how long a browser may take to come up and ask.
const browserPatience = 30 * time.Second

// Browse opens the user's browser at an address that may be secret. The browser's arguments, which everybody on this machine
// can read, have an address that leads there once. It returns when the browser has asked.
func Browse(ctx context.Context, address string) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	return browse(ctx, address, browserPatience, func(once string) error {
		cmd := exec.Command(opener, once)
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() { _ = cmd.Wait() }() // some stay as long as the browser does
		return nil
	})
}

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
	if err := open(fmt.Sprintf("http://%s%s", l.Addr(), path)); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-asked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errors.New("none came up in time")
	}
}
