package facts

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/printable"
)

// LockHolder is the run of kgpu that holds the cluster's lock on a control plane.
type LockHolder struct {
	Who     string    // user@machine; empty if it has not written it yet
	From    string    // the address it connects from; empty if unknown
	Since   time.Time // by the host's clock; zero if unknown
	Command string    // such as "up inventory.yaml"
	Run     string    // ID of the run
}

// ParseLockHolder reads lines such as who=ada@laptop, as the holder wrote them, and skips unknown keys.
func ParseLockHolder(lines []string) (*LockHolder, error) {
	o := &LockHolder{}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		value = printable.Line(value)
		switch key {
		case "who":
			o.Who = value
		case "from":
			o.From = value
		case "command":
			o.Command = value
		case "run":
			o.Run = value
		case "since":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, bad("operator", line, err)
			}
			o.Since = time.Unix(seconds, 0)
		}
	}
	return o, nil
}

// Describe tells a person who it is, from where, since when and what it does. now is the host's clock.
func (o *LockHolder) Describe(now time.Time) string {
	text := cmp.Or(o.Who, "somebody")
	if o.From != "" {
		text += " from " + o.From
	}
	if !o.Since.IsZero() {
		text += " since " + o.Since.UTC().Format("2006-01-02 15:04:05 UTC") + " (" + max(now.Sub(o.Since), 0).Truncate(time.Second).String() + " ago)"
	}
	if o.Command != "" {
		text += ", doing `kgpu " + o.Command + "`"
	}
	return text
}

// lockHolder reads what facts.sh found of the lock's holder.
func lockHolder(a answer, h *Host) error {
	if !a.has("operator") {
		return nil
	}
	var err error
	h.LockHolder, err = ParseLockHolder(a["operator"])
	return err
}
