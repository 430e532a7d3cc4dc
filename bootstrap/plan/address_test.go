package plan

import (
	"slices"
	"testing"
)

// TestNamesInCertificates: kubeadm takes names in lower case only.
func TestNamesInCertificates(t *testing.T) {
	inv := decode(t, "hosts: [{address: GPU1.Example.com., name: cp1, role: control-plane}]\nkubernetes: {controlPlaneEndpoint: K8s.Example.com}\n")
	b, err := newBuilder(inv, hostFacts(decode(t, "hosts: [{address: 10.0.0.10, name: cp1, role: control-plane}]\n")))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.certSANs(), []string{"10.0.0.10", "gpu1.example.com", "k8s.example.com"}; !slices.Equal(got, want) || b.Endpoint() != "k8s.example.com:6443" {
		t.Errorf("%q and %s, want %q", got, b.Endpoint(), want)
	}
}
