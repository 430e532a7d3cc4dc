package scripts

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// reach.sh is read from standard input, and its endpoints come after it.
func TestReach(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := func(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }
	want := map[facts.Endpoint]facts.Reach{
		{Host: "127.0.0.1", Port: port(listener)}: facts.Open,
		{Host: "127.0.0.1", Port: port(gone)}:     facts.Refused,
		{Host: "localhost", Port: port(listener)}: facts.Open,
		{Host: "no-such-host.invalid", Port: 443}: facts.Unresolved,
		// What a name is made of is no business of the shell's.
		{Host: "$(touch${IFS}/tmp/reached);'", Port: 443}: facts.Unresolved,
	}
	gone.Close()

	var targets strings.Builder
	for e := range want {
		fmt.Fprintln(&targets, e)
	}
	var out bytes.Buffer
	cmd := exec.Command("bash", "-s")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.MultiReader(bytes.NewReader(Reach()), strings.NewReader(targets.String())), &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	got, err := facts.ParseReach(out.Bytes())
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v in\n%s", got, err, &out)
	}
}

// A route that leads nowhere is told apart from a machine that does not answer.
func TestReachWithoutNetwork(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("unshare", "--net", "bash", "-s")
	cmd.Stdin = io.MultiReader(bytes.NewReader(Reach()), strings.NewReader("192.0.2.1 6443\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := facts.ParseReach(out)
	if want := map[facts.Endpoint]facts.Reach{{Host: "192.0.2.1", Port: 6443}: facts.Unreachable}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}
