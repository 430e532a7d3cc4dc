package kubeconfig_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
)

// A certificate that is somebody else's, or for another key, makes no kubeconfig.
func TestUserCertificate(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	certificate := func(user string) (cert, key []byte) {
		key, request, err := kubeconfig.NewRequest(user, "lab")
		if err != nil {
			t.Fatal(err)
		}
		return authority.Sign(t, fmt.Appendf(nil, "spec: {request: %s, expirationSeconds: 86400}", base64.StdEncoding.EncodeToString(request))), key
	}
	joe, key := certificate("joe")
	again, _ := certificate("joe")
	ann, anns := certificate("ann")
	if text, _, err := kubeconfig.UserCertificate(append([]byte("\n"), joe...), key, authority.PEM(), "joe"); err != nil || !bytes.Equal(text, joe) {
		t.Errorf("%v, and the kubeconfig has %q", err, text)
	}
	for name, c := range map[string][3][]byte{
		"another key's": {again, key, authority.PEM()}, "another user's": {ann, anns, authority.PEM()}, "nothing": {nil, key, authority.PEM()},
		"another authority's": {joe, key, clustertest.NewAuthority(t).PEM()}, "with something behind": {slices.Concat(joe, []byte("exec: {}\n")), key, authority.PEM()},
		"with a key behind": {slices.Concat(joe, key), key, authority.PEM()},
	} {
		if _, _, err := kubeconfig.UserCertificate(c[0], c[1], c[2], "joe"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
