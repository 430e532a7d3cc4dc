package access

import (
	"errors"
	"net"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// A port of this machine that somebody has is the choice of whoever typed it.
func TestPortThatIsTaken(t *testing.T) {
	taken, err := listen(0)
	must(t, err)
	defer taken.Close()
	usage := (*reason.UsageError)(nil)
	if _, err := listen(taken.Addr().(*net.TCPAddr).Port); !errors.As(err, &usage) || !strings.Contains(usage.Message, "--port") {
		t.Errorf("a taken port: %v", err)
	}
}
