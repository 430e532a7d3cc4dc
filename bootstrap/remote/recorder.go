package remote

import (
	"io"

	"golang.org/x/crypto/ssh"
)

// recorder wraps the key's signer so that the offer learns what happens to it. The ssh package asks for the public key
// when it offers a key, and for a signature when the server wants that key.
func (o *offer) recorder() ssh.Signer {
	r := recorder{Signer: o.signer, offer: o}
	switch s := o.signer.(type) {
	case ssh.MultiAlgorithmSigner:
		return &multiRecorder{algorithmRecorder{r, s}, s}
	case ssh.AlgorithmSigner:
		return &algorithmRecorder{r, s}
	default:
		return &r
	}
}

type recorder struct {
	ssh.Signer
	offer *offer
}

func (r *recorder) PublicKey() ssh.PublicKey {
	r.offer.offered = true
	return r.Signer.PublicKey()
}

func (r *recorder) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	sig, err := r.Signer.Sign(rand, data)
	r.offer.signed, r.offer.err = true, err
	return sig, err
}

type algorithmRecorder struct {
	recorder
	signer ssh.AlgorithmSigner
}

func (r *algorithmRecorder) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	sig, err := r.signer.SignWithAlgorithm(rand, data, algorithm)
	r.offer.signed, r.offer.err = true, err
	return sig, err
}

type multiRecorder struct {
	algorithmRecorder
	multi ssh.MultiAlgorithmSigner
}

func (r *multiRecorder) Algorithms() []string { return r.multi.Algorithms() }
