package facts

import (
	"fmt"
	"strconv"
	"strings"
)

// Endpoint is a TCP host and port.
type Endpoint struct {
	Host string // name or address
	Port uint16
}

// String is the format that scripts/reach.sh reads and prints.
func (e Endpoint) String() string { return fmt.Sprintf("%s %d", e.Host, e.Port) }

// Reach is the result of an attempt to connect.
type Reach string

const (
	Open        Reach = "open"
	Refused     Reach = "refused"    // the machine answers, and nothing listens
	Silent      Reach = "silent"     // no answer in time: the machine is off, or something drops the packets
	Unresolved  Reach = "unresolved" // the name does not resolve
	Unreachable Reach = "unreachable"
)

// ByProxy returns the result of connecting to the proxy that the host's apt uses for the endpoint; false if apt uses
// none or the proxy is reachable.
func (r Reach) ByProxy() (Reach, bool) {
	state, ok := strings.CutPrefix(string(r), "proxy-")
	return Reach(state), ok
}

// ParseReach reads the output of scripts/reach.sh.
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
