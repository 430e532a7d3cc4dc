package scripts

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// reach.sh is read from standard input, and its endpoints come after it.
func TestReach(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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
	must(t, err)
	got, err := facts.ParseReach(out)
	if want := map[facts.Endpoint]facts.Reach{{Host: "192.0.2.1", Port: 6443}: facts.Unreachable}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// The first name server of a host is dead, such as one that a router named and that is gone: the second one answers.
func TestReachPastADeadNameServer(t *testing.T) {
	t.Parallel()
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	must(t, os.WriteFile(resolv, []byte("nameserver 192.0.2.1\nnameserver 127.0.0.1\n"), 0o644))
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, with its network and its mounts, ends with the function
		failed <- func() error {
			if err := syscall.Unshare(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS); err != nil {
				return err
			}
			// The other end of nowhere is nobody's: what is sent into it is never heard of again.
			world := exec.Command("sh", "-ec", `mount --make-rprivate / && mount --bind "$0" /etc/resolv.conf && ip link set lo up
				ip link add nowhere type veth peer name end && ip addr add 192.0.2.2/24 dev nowhere && ip link set nowhere up && ip link set end up
				ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev nowhere`, resolv)
			if out, err := world.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53})
			if err != nil {
				return err
			}
			defer server.Close()
			go saysLoopback(server)
			cmd := exec.Command("bash", "-s")
			cmd.Stdin = io.MultiReader(bytes.NewReader(Reach()), strings.NewReader("pkgs.example.com 443\n"))
			out, err := cmd.Output()
			if err != nil {
				return err
			}
			got, err := facts.ParseReach(out)
			if want := map[facts.Endpoint]facts.Reach{{Host: "pkgs.example.com", Port: 443}: facts.Refused}; err != nil || !maps.Equal(got, want) {
				return fmt.Errorf("%v, %v", got, err)
			}
			return nil
		}()
	}()
	must(t, <-failed)
}

// saysLoopback answers questions for the IPv4 address of a name with 127.0.0.1, and others with nothing (RFC 1035, section 4).
func saysLoopback(server *net.UDPConn) {
	for {
		question := make([]byte, 512)
		n, from, err := server.ReadFromUDP(question)
		if err != nil {
			return
		}
		end := 12 + bytes.IndexByte(question[12:n], 0) + 5
		answer := append(question[:2:2], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
		answer = append(answer, question[12:end]...)
		if question[end-3] == 1 {
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
		}
		_, _ = server.WriteToUDP(answer, from)
	}
}
