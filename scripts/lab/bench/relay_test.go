package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestRelay sends more than any buffer holds both ways: it arrives whole and in order, its end does too, and no answer
// comes before two round trips, the connection's own and that of the first byte.
func TestRelay(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	const oneWay = 5 * time.Millisecond
	h := host{address: netip.MustParseAddr("10.199.250.250"), sshd: server.Addr().(*net.TCPAddr).AddrPort()}
	r, err := startRelays([]host{h}, oneWay)
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	if want := netip.MustParseAddr("127.1.250.250"); r.hosts[0].sshd.Addr() != want {
		t.Errorf("the relay is at %s, want %s", r.hosts[0].sshd, want)
	}
	start := time.Now()
	c, err := net.Dial("tcp", r.hosts[0].sshd.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make([]byte, 8<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 4*oneWay {
		t.Errorf("an answer after %s", took)
	}
	rest, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(first, rest...), sent) {
		t.Errorf("%d bytes came back, not the %d that were sent", len(rest)+1, len(sent))
	}
}

// TestRelayToNobody ends the client's connection.
func TestRelayToNobody(t *testing.T) {
	h := host{address: netip.MustParseAddr("10.199.250.251"), sshd: netip.MustParseAddrPort("127.0.0.1:1")}
	r, err := startRelays([]host{h}, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", r.hosts[0].sshd.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.ReadAll(c); len(n) > 0 {
		t.Errorf("%q, %v", n, err)
	}
	r.stop()
}
