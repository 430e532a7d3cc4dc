package smoke

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzCheckProof: the output of a pod decides only about its own GPUs, and reaches a terminal only as printable text.
func FuzzCheckProof(f *testing.F) {
	nodes := []Node{{Name: "w1", GPUs: []GPU{{UUID: "GPU-1", Name: "A100"}}}}
	f.Add("w1-0\tGPU 0: A100 (UUID: GPU-1)\nw1-0\tkgpu-status 0\nw1-0\tkgpu-device /dev/nvidia0\nw1-0\tkgpu-end\n")
	f.Add("smi-w1-0\tGPU 0: A100 (UUID: GPU-1)\nsmi-w1-0\tkgpu-status 0\nsmi-w1-0\tkgpu-sample 1\nsmi-w1-0\tkgpu-said \x1b[2J\nsmi-w1-0\tkgpu-end\n")
	f.Add("w1-0\tkgpu-held x\nother\t\x1b[2J\n\t\n")
	f.Add("kgpu-version CUDA \x1b[2J\nkgpu-device CUDA cuda:0 \a\nkgpu-computed CUDA 0 5\nkgpu-card GPU-1\nkgpu-end\n")
	f.Add("kgpu-device TensorFlow /gpu:0\nkgpu-failed TensorFlow 0 \x07\nkgpu-died PyTorch \v\nkgpu-end\n")
	f.Fuzz(func(t *testing.T, logs string) {
		table, err := CheckProof(nodes, logs)
		if err != nil && strings.ContainsFunc(err.Error(), func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }) {
			t.Errorf("%q", err)
		}
		if table != nil && len(table.Rows) > len(nodes[0].GPUs) {
			t.Errorf("%d rows for one card", len(table.Rows))
		}
		if d, err := CheckNotebook(logs); d != nil && strings.ContainsFunc(d.String()+d.By(), unicode.IsControl) ||
			err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%q, %q", d, err)
		}
		if strings.ContainsFunc(QuotedLastLine(logs), unicode.IsControl) {
			t.Errorf("%q", QuotedLastLine(logs))
		}
	})
}
