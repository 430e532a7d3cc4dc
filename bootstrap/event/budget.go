package event

import "sync"

// What a host can make a run grow by. An honest host tells a few MiB: what package managers, compilers of drivers and
// kubeadm print.
const (
	MostOfHost = 32 << 20       // bytes that one host may tell a run, and that the folder of the run keeps of it
	MostOfRun  = 8 * MostOfHost // bytes that the folder of a run has
	Cost       = 192            // bytes that a line or an event counts for beyond its text
)

// Budget counts what hosts make grow: the one bound for all that they tell, whatever kind of line or event it is. The zero
// value is ready, and it is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	spent map[string]int
}

// Spend counts bytes of a host and reports whether it may tell that much in all.
func (b *Budget) Spend(host string, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent == nil {
		b.spent = map[string]int{}
	}
	b.spent[host] += bytes
	return b.spent[host] <= MostOfHost
}
