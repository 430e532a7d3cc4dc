package internet

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

func (w *world) fault(t *testing.T, where, words string) {
	t.Helper()
	f, err := ParseFault(where, words)
	if err == nil {
		err = w.faults.Add(f)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFaults(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("0123456789", 10_000) // more than one write
	put(t, filepath.Join(w.sites, "example.com/deb/a.deb"), text)
	put(t, filepath.Join(w.sites, "example.com/deb/b.deb"), text)
	const url = "https://example.com/deb/a.deb"
	tampered := []byte(text)
	tampered[len(text)/2] ^= 1

	for _, c := range []struct {
		words  string
		status int
		text   string
	}{
		{"status=500,times=1", 500, "a fault of the lab\n"},
		{"tamper,times=1", 200, string(tampered)},
		{"truncate,times=1", 200, text[:len(text)/2]},
	} {
		w.fault(t, "example.com/deb/a", c.words)
		if status, got := w.get(t, "https://example.com/deb/b.deb"); status != 200 || got != text {
			t.Errorf("%s: another path is concerned: %d, %d bytes", c.words, status, len(got))
		}
		if r, err := w.client.Head(url); err != nil || r.StatusCode != c.status || c.status == 200 && r.ContentLength != int64(len(text)) {
			t.Errorf("%s: HEAD: %v %v", c.words, r, err)
		}
		if c.status != 200 {
			w.fault(t, "example.com/deb/a", c.words) // HEAD has met it
		}
		if status, got := w.get(t, url); status != c.status || got != c.text {
			t.Errorf("%s: %d, %d bytes", c.words, status, len(got))
		}
		if status, got := w.get(t, url); status != 200 || got != text {
			t.Errorf("%s: it is not over: %d, %d bytes", c.words, status, len(got))
		}
	}
	if all, err := w.faults.List(); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// A client that has the file gets the other one all the same.
func TestTamperedAnswersAreWhole(t *testing.T) {
	w := newWorld(t)
	put(t, filepath.Join(w.sites, "example.com/a"), "abcd")
	w.fault(t, "example.com/a", "tamper")
	request, err := http.NewRequest(http.MethodGet, "https://example.com/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT")
	request.Header.Set("Range", "bytes=2-")
	r, err := w.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK || r.ContentLength != 4 {
		t.Errorf("status %d, %d bytes", r.StatusCode, r.ContentLength)
	}
}

func TestFaultsOfRegistries(t *testing.T) {
	w := newWorld(t)
	image := randomImage(t)
	if err := (store.Store{Dir: w.images}).Put("registry.k8s.io/pause:3.10", image); err != nil {
		t.Fatal(err)
	}
	pull := func() error {
		got, err := crane.Pull("registry.k8s.io/pause:3.10", crane.WithTransport(w.client.Transport))
		if err == nil {
			err = validate.Image(got)
		}
		return err
	}
	w.fault(t, "registry.k8s.io/v2/pause/manifests/", "status=404,times=1")
	w.fault(t, "registry.k8s.io/v2/pause/blobs/", "tamper,times=1")
	for _, want := range []string{"404", "validating layers"} {
		if err := pull(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := pull(); err != nil {
		t.Error(err)
	}
}

func TestHang(t *testing.T) {
	w := newWorld(t)
	w.fault(t, "example.com/", "hang,times=1")
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan error)
	go func() {
		_, err := w.client.Do(request)
		answer <- err
	}()
	for left := 1; left > 0; { // until the server has the request
		all, err := w.faults.List()
		if err != nil {
			t.Fatal(err)
		}
		left = len(all)
	}
	if status, _ := w.get(t, "https://example.com/"); status != http.StatusNotFound {
		t.Errorf("the next request: status %d", status)
	}
	select {
	case err := <-answer:
		t.Fatalf("an answer: %v", err)
	default:
	}
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestFaultsAreListedAsTheyAreAdded(t *testing.T) {
	w := newWorld(t)
	want := []string{
		"pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key tamper",
		"registry.k8s.io/v2/ status=429,times=3,retry-after=2",
		"example.com/ hang",
	}
	for _, f := range want {
		where, words, _ := strings.Cut(f, " ")
		w.fault(t, where, words)
	}
	all, err := w.faults.List()
	var got []string
	for _, f := range all {
		got = append(got, f.String())
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, wrong := range []string{"example.com status=200", "example.com/ ", "example.com/ tamper,hang", "example.com/ tamper,retry-after=3", "/x tamper", "example.com/ times=0,tamper", "example.com/ times=2"} {
		where, words, _ := strings.Cut(wrong, " ")
		if f, err := ParseFault(where, words); err == nil {
			t.Errorf("%q is %v", wrong, f)
		}
	}
	if err := w.faults.Clear(); err != nil {
		t.Fatal(err)
	}
	if all, err := w.faults.List(); err != nil || len(all) > 0 {
		t.Errorf("after clear: %q, %v", all, err)
	}
}
