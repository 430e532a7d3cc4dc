// Package jupyter talks to a Jupyter server as a browser does: REST for its kernels, and a websocket for what they say. It
// works with the classic notebook and with jupyter_server.
package jupyter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Client is a Jupyter server and the right to use it. It is safe for concurrent use.
type Client struct {
	host  string // host:port, as it stands in the URL
	token string
	http  *http.Client
}

// maxBody is what is read of an answer: those of the kernels' API have some hundred bytes.
const maxBody = 1 << 20

// New returns a client of the server at host:port, which dial connects to.
func New(host, token string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	return &Client{host: host, token: token, http: &http.Client{
		// No proxy: it would hear the token, and knows nothing about the nodes.
		Transport: &http.Transport{DialContext: dial, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true},
		// Where a redirection leads is no Jupyter server, and must not hear the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// StatusError is an answer that is no success.
type StatusError struct {
	Method, Path string
	Status       int    // HTTP's
	Body         string // its beginning
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s: HTTP status %d", e.Method, e.Path, e.Status)
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// Version is that of the server. It needs no token, and none is sent: it tells whether this is a Jupyter server at all.
func (c *Client) Version(ctx context.Context) (string, error) {
	var answer struct {
		Version string `json:"version"`
	}
	if err := c.call(ctx, http.MethodGet, "/api", http.Header{}, &answer); err != nil {
		return "", err
	}
	if answer.Version == "" {
		return "", fmt.Errorf("GET /api: what answers is no Jupyter server")
	}
	return shorten(answer.Version), nil
}

// startKernel returns the ID of a new kernel of the server's default kind.
func (c *Client) startKernel(ctx context.Context) (string, error) {
	var answer struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, http.MethodPost, "/api/kernels", c.header(), &answer); err != nil {
		return "", err
	}
	if answer.ID == "" {
		return "", fmt.Errorf("POST /api/kernels: the new kernel has no ID")
	}
	return answer.ID, nil
}

func kernelPath(id string) string { return "/api/kernels/" + url.PathEscape(id) }

func (c *Client) header() http.Header {
	return http.Header{"Authorization": {"token " + c.token}}
}

// call reads the answer into out, unless it is nil.
func (c *Client) call(ctx context.Context, method, path string, header http.Header, out any) error {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("{}")
		header.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.host+path, body)
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &StatusError{method, path, resp.StatusCode, shorten(string(bytes.TrimSpace(data)))}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: what answers is no Jupyter server: %w", method, path, err)
	}
	return nil
}

// afterwards is how long the end of a kernel may take when its work is over, or was given up.
const afterwards = 15 * time.Second

// shorten keeps what a server says small and fit to be printed on a line.
func shorten(s string) string { return printable.Short(strings.Join(strings.Fields(s), " "), 400) }
