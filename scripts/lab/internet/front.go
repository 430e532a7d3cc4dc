package internet

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// front answers for every name of the lab's internet: the registry API where a path asks for it, static files otherwise.
type front struct {
	sites    []string // folders of sites by host name, first match wins
	registry http.Handler
}

func newFront(images string, sites ...string) front {
	return front{sites: sites, registry: registry{store.Store{Dir: images}}}
}

func (f front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2" || strings.HasPrefix(r.URL.Path, "/v2/") {
		f.registry.ServeHTTP(w, r)
		return
	}
	host := hostOf(r)
	if !hostName.MatchString(host) {
		http.Error(w, "not a host name: "+host, http.StatusBadRequest)
		return
	}
	for _, sites := range f.sites {
		site := filepath.Join(sites, host)
		if _, err := os.Stat(filepath.Join(site, filepath.FromSlash(filepath.Clean("/"+r.URL.Path)))); err == nil {
			http.FileServer(http.Dir(site)).ServeHTTP(w, r)
			return
		}
	}
	http.Error(w, "not in the lab: "+host+r.URL.Path, http.StatusNotFound)
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return strings.ToLower(host)
	}
	return strings.ToLower(r.Host)
}

// accessLog writes one line per request: time, client, status (0: no answer), bytes, seconds, request.
func accessLog(out io.Writer, next http.Handler) http.Handler {
	var lock sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, counted := time.Now(), &countingWriter{ResponseWriter: w}
		defer func() {
			lock.Lock()
			defer lock.Unlock()
			fmt.Fprintf(out, "%s %s %d %d %.3f %s %s%s\n", start.UTC().Format(time.RFC3339), r.RemoteAddr, counted.status, counted.bytes,
				time.Since(start).Seconds(), r.Method, r.Host, r.URL.RequestURI())
		}()
		next.ServeHTTP(counted, r)
	})
}

type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (c *countingWriter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *countingWriter) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// ReadFrom keeps the kernel's file-to-socket copy that the wrapped writer offers.
func (c *countingWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(c.ResponseWriter, r)
	c.bytes += n
	return n, err
}
