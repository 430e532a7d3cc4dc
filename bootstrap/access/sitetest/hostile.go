package sitetest

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// Evil is what a terminal would obey, and what is no UTF-8.
const Evil = "\x1b]0;evil\x07\x1b[2J\u009b31m\u202e\xff\x00"

// Bare is what facts.sh prints on a bare host of that name, with more lines.
func Bare(name string, more ...string) string {
	return fmt.Sprintf("kgpu-facts=1\nnow=%d.0\nhostname=%s\nmachine-id=%[2]s\nos-release=ID=ubuntu\nos-release=VERSION_ID=\"24.04\"\nos-release=VERSION_CODENAME=noble\n"+
		"kernel=6.8.0-31-generic\nvirt=kvm\nsystemd=1\ncgroup2=1\ncpus=8\nmemory-kib=16777216\narch=amd64\nledger=0\n%s\nend=1\n", time.Now().Unix(), name, strings.Join(more, "\n"))
}

// Pour writes the piece until there are size bytes, or nobody takes them.
func Pour(w io.Writer, piece string, size int) {
	text := []byte(strings.Repeat(piece, 1+64<<10/len(piece)))
	for n := 0; n < size; n += len(text) {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// Silent is a host at which nobody listens.
func Silent(t *testing.T, name string) inventory.Host {
	t.Helper()
	server := sshtest.Listen(t, sshtest.Config{})
	server.Stop()
	h := server.Host()
	h.Name = name
	return h
}
