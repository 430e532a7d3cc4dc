// Package internet is what a lab's hosts see of the world: package repositories, registries and download sites under their real
// names, out of the cache that prepare fills. It listens on the addresses it is given and nowhere else.
package internet

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/problem"
)

// Options says what is served and where.
type Options struct {
	Place  place.Place
	Listen []netip.Addr // the lab's own bridge addresses
	Log    io.Writer    // one line per request
}

const (
	plainPort, securePort = 80, 443
	shutdownTime          = 2 * time.Second
)

// Serve answers on ports 80 and 443 of every address until ctx ends. It returns an error when one of them cannot be had.
func Serve(ctx context.Context, o Options) error {
	authority, err := loadAuthority(o.Place.PKI())
	if err != nil {
		return err
	}
	handler := accessLog(o.Log, faulty(Faults{File: o.Place.Faults()},
		newFront(o.Place.Registry(), filepath.Join(o.Place.Extra, "www"), filepath.Dir(o.Place.Site("any")))))
	secure := &tls.Config{GetCertificate: authority.get, NextProtos: []string{"h2", "http/1.1"}}

	group, ctx := errgroup.WithContext(ctx)
	for _, address := range o.Listen {
		for _, port := range []uint16{plainPort, securePort} {
			listener, err := net.Listen("tcp", netip.AddrPortFrom(address, port).String())
			if err != nil {
				return &problem.Problem{Step: "open the lab's internet", Reason: "LAB_INTERNET_LISTEN",
					Advice: "Another program has the port of the lab's bridge: `ss -ltnp` shows it.", Err: err}
			}
			if port == securePort {
				listener = tls.NewListener(listener, secure)
			}
			server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(o.Log, "", 0)}
			group.Go(func() error {
				if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					return err
				}
				return nil
			})
			group.Go(func() error {
				<-ctx.Done()
				grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
				defer cancel()
				if server.Shutdown(grace) != nil {
					return server.Close()
				}
				return nil
			})
		}
	}
	return group.Wait()
}
