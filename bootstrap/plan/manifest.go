package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// manifestHash annotates the workloads kgpu applies, so that facts can tell whether they are still the wanted ones.
const manifestHash = "kgpu.dev/manifest-sha256"

type object = map[string]any

// decodeManifest reads the objects of a YAML stream.
func decodeManifest(data []byte) ([]object, error) {
	var out []object
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var o object
		switch err := dec.Decode(&o); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case o != nil:
			out = append(out, o)
		}
	}
}

// encodeManifest marks the workloads with the hash of the whole, and returns the stream and the hash.
func encodeManifest(objects []object) (manifest, hash string, err error) {
	plain, err := json.Marshal(objects)
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(plain)
	hash = hex.EncodeToString(sum[:])
	for _, o := range objects {
		if o["kind"] == "DaemonSet" || o["kind"] == "Deployment" {
			meta := o["metadata"].(object)
			annotations, _ := meta["annotations"].(object)
			meta["annotations"] = merge(annotations, object{manifestHash: hash})
		}
	}
	manifest, err = manifests.Encode(objects...)
	return manifest, hash, err
}

// Image is where an upstream image is pulled from: upstream, or the inventory's registry under the same path.
func Image(inv *inventory.Inventory, upstream string) string {
	if inv.Registry == "" {
		return upstream
	}
	_, path, ok := strings.Cut(upstream, "/")
	if !ok {
		return fmt.Sprintf("%s/%s", inv.Registry, upstream)
	}
	return inv.Registry + "/" + path
}

func (b *builder) image(upstream string) string { return Image(b.Inventory, upstream) }
