package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// world is how the internet is asked.
type world struct {
	client *http.Client
	also   []string // fingerprints of keys that may sign repositories besides those of the catalog: a lab's own
}

// largest bounds an answer, packed or not: Packages of a whole distribution has 60 MB and more.
const largest = 512 << 20

func newWorld() world {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 30 * time.Second
	return world{client: &http.Client{Transport: transport, Timeout: 5 * time.Minute}}
}

// get returns the body of a URL. What else comes than status 200 is an error in the server's words.
func (w world) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", response.Status)
	}
	return bounded(response.Body)
}

// newest is the tag of a GitHub repository's newest release, which the address "latest" leads to.
func (w world) newest(ctx context.Context, repository string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, repository+"/releases/latest", nil)
	if err != nil {
		return "", err
	}
	client := *w.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	_, tag, found := strings.Cut(response.Header.Get("Location"), "/releases/tag/")
	if !found {
		return "", fmt.Errorf("the server answers %s, and leads to no release", response.Status)
	}
	return tag, nil
}

func bounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("the answer has more than %d bytes", largest)
	}
	return data, err
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return bounded(r)
}
