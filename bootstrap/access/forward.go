package access

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// listen opens a port of this machine for this machine alone; 0: a free one.
func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil && port == 0 {
		return nil, fmt.Errorf("listening on this machine: %w", err)
	}
	if err != nil {
		return nil, reason.Usagef("port %d of this machine cannot be had: %v; choose another with --port, or leave it out for a free one", port, err)
	}
	return l, nil
}

// through dials as the host sees the network. A connection that was lost is opened again.
func (c *Cluster) through(id string) dialFunc {
	return func(ctx context.Context, address string) (far net.Conn, err error) {
		err = c.WithReconnect(ctx, id, func(h *remote.Host) (err error) {
			far, err = h.DialTCP(ctx, address)
			return err
		})
		return far, err
	}
}

// forward passes what connects to l on to address, as the host sees it, until ctx ends. It returns when every connection is
// closed. One that cannot be passed on is closed, and told about.
func (c *Cluster) forward(ctx context.Context, l net.Listener, id, address string) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	dial := c.through(id)
	for {
		near, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the tunnel: %w", err)
		}
		wg.Go(func() {
			defer near.Close()
			far, err := dial(ctx, address)
			if err != nil {
				if ctx.Err() == nil {
					c.Tell(event.Event{Host: id, Kind: event.Warning, Text: "the tunnel: " + err.Error()})
				}
				return
			}
			join(ctx, near, far)
		})
	}
}

// join copies in both directions until one side closes, or ctx ends, and closes both.
func join(ctx context.Context, a, b net.Conn) {
	over := sync.OnceFunc(func() { a.Close(); b.Close() })
	defer context.AfterFunc(ctx, over)()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			over()
		})
	}
	wg.Wait()
}
