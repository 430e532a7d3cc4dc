package event

import "sync"

// These bound the data that hosts can make a run produce. An honest host sends a few MiB: the output of package
// managers, driver compilers and kubeadm.
const (
	MaxHostBytes   = 32 << 20         // bytes that a run accepts from one host, and keeps of it in its folder
	MaxRunBytes    = 8 * MaxHostBytes // bytes in the folder of a run
	RecordOverhead = 192              // bytes that a line or an event counts for in addition to its text
)

// Budget counts the bytes that each host sends, whatever kind of line or event they are. The zero value is ready to
// use, and it is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	spent map[string]int
}

// Spend counts bytes of a host and reports whether the host is within MaxHostBytes.
func (b *Budget) Spend(host string, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent == nil {
		b.spent = map[string]int{}
	}
	b.spent[host] += bytes
	return b.spent[host] <= MaxHostBytes
}
