package facts

import (
	"fmt"
	"strconv"
	"strings"
)

// Endpoint is where a TCP connection may go to.
type Endpoint struct {
	Host string // name or address
	Port uint16
}

// String is how the script that tries endpoints reads and prints them.
func (e Endpoint) String() string { return fmt.Sprintf("%s %d", e.Host, e.Port) }

// Reach is what became of an attempt to connect.
type Reach string

// What an attempt may show.
const (
	Open        Reach = "open"
	Refused     Reach = "refused"    // the machine answers and nothing listens
	Silent      Reach = "silent"     // no answer in time: the machine is off, or something drops the packets
	Unresolved  Reach = "unresolved" // the name has no address
	Unreachable Reach = "unreachable"
)

// ByProxy returns what became of an attempt to connect to the proxy by which the host's own apt would fetch from the endpoint; false:
// there is none, or it is open.
func (r Reach) ByProxy() (Reach, bool) {
	state, ok := strings.CutPrefix(string(r), "proxy-")
	return Reach(state), ok
}

// ParseReach reads what scripts/reach.sh printed.
func ParseReach(output []byte) (map[Endpoint]Reach, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return nil, err
	}
	states := map[Endpoint]Reach{}
	for _, line := range a["reach"] {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, bad("reach", line, fmt.Errorf("want three words"))
		}
		port, err := strconv.ParseUint(f[1], 10, 16)
		if err != nil {
			return nil, bad("reach", line, err)
		}
		states[Endpoint{f[0], uint16(port)}] = Reach(f[2])
	}
	return states, nil
}
