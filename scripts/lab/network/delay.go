package network

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrNoNetem says that the kernel cannot delay packets.
var ErrNoNetem = errors.New("the kernel has no network emulator (CONFIG_NET_SCH_NETEM, module sch_netem)")

// Delay holds every packet on its way to the host back by d; zero ends that.
// It adds d to a round trip, not twice d.
func Delay(c Cable, d time.Duration) error {
	link, err := netlink.LinkByName(c.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	attrs := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	netem := netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: uint32(d.Microseconds())})
	if d == 0 {
		err = netlink.QdiscDel(netem)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
			return nil // none is set
		}
	} else {
		err = netlink.QdiscReplace(netem)
		if errors.Is(err, unix.ENOENT) {
			return ErrNoNetem
		}
	}
	if err != nil {
		return fmt.Errorf("delay of %s: %w", c.Name, err)
	}
	return nil
}
