package internet

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// registry answers the pull half of the OCI distribution API for every registry host whose images are in the store.
type registry struct{ store store.Store }

var registryPath = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs|tags)/([^/]+)$`)

func (g registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "the lab's registries are for pulling")
		return
	}
	if r.URL.Path == "/v2/" || r.URL.Path == "/v2" {
		answer(w, "application/json", []byte("{}"))
		return
	}
	match := registryPath.FindStringSubmatch(r.URL.Path)
	if match == nil {
		refuse(w, http.StatusNotFound, "NAME_INVALID", "no such resource")
		return
	}
	repository, reference := store.Repository{Host: hostOf(r), Name: match[1]}, match[3]
	switch match[2] {
	case "manifests":
		g.manifest(w, repository, reference)
	case "blobs":
		g.blob(w, r, reference)
	case "tags":
		g.tags(w, repository)
	}
}

func (g registry) manifest(w http.ResponseWriter, repository store.Repository, reference string) {
	d, text, err := g.store.Manifest(repository, reference)
	if errors.Is(err, store.ErrNotFound) {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", err.Error())
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	w.Header().Set("Docker-Content-Digest", d.Digest.String())
	answer(w, string(d.MediaType), text)
}

// blob serves any blob to any repository: all of them are public here.
func (g registry) blob(w http.ResponseWriter, r *http.Request, digest string) {
	h, err := v1.NewHash(digest)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	file, err := os.Open(g.store.Blob(h))
	if errors.Is(err, fs.ErrNotExist) {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "no blob "+digest)
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", info.ModTime(), file)
}

func (g registry) tags(w http.ResponseWriter, repository store.Repository) {
	tags, err := g.store.Tags(repository)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	if len(tags) == 0 {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "no images of "+repository.String())
		return
	}
	text, err := json.Marshal(map[string]any{"name": repository.Name, "tags": tags})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	answer(w, "application/json", text)
}

func answer(w http.ResponseWriter, contentType string, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // the client is gone when this fails
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	text, _ := json.Marshal(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
