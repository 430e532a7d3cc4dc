package storm

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// explained are the reasons with which kgpu may end because of what the storm does. Any other is no answer to a fault:
// that the inventory is wrong, say, or that a host is somebody else's. HOST_APT_LOCKED is not among them: the storm holds the
// lock for seconds, and kgpu waits for half an hour.
var explained = []string{
	// A host is off, or cut off, or boots and lets nobody in yet; it goes down while it is asked.
	"SSH_UNREACHABLE", "SSH_LOST", "SSH_AUTH_FAILED", "SSH_COMMAND_REFUSED", "SUDO_REFUSED", "HOST_FACTS_FAILED",
	// A host that was cut off does not know yet that the run before was killed.
	busy,
	// A host goes down during a step, or a part of the step is killed.
	"STEP_FAILED", "STEP_TIMEOUT", "STEP_INTERRUPTED", "HOST_DPKG_BROKEN",
	// A step waits for another host that goes down.
	"API_UNREACHABLE", "NODE_NOT_READY",
	// A host is cut off when the hosts try what they can reach, or while something is downloaded, also the lists of packages.
	"NET_PORT_BLOCKED", "NET_NAME_UNRESOLVED", "REPO_UNREACHABLE", "REGISTRY_UNREACHABLE", "PACKAGE_MISSING",
	"REPO_CONTENT_MISMATCH", "IMAGE_MISMATCH",
}

// ofCards are the reasons that hosts with cards add to those.
var ofCards = []string{
	// A host goes down, or is cut off, while pods of the proof are there: they end, or cannot be asked what they saw.
	"SMOKE_FAILED",
	// The same with the notebook: its pod ends, or begins anew and has its card, and its port, only after a while.
	"NOTEBOOK_FAILED", "NOTEBOOK_NO_CARD", "NOTEBOOK_UNREACHABLE",
}

// ofUpgrades are those that an upgrade adds.
var ofUpgrades = []string{
	// The control plane goes down while it is upgraded, or etcd while it is asked for a snapshot.
	"UPGRADE_FAILED", "UPGRADE_SNAPSHOT",
}

// busy is the reason of a run that finds another one at work.
const busy = "HOST_BUSY"

// lockSilence is how long the lock of a run that was killed while its host was cut off may last, with a second for the host:
// run.DefaultHeartbeatTimeout of kgpu.
const lockSilence = 21 * time.Second

// cancelled is the reason of a step that is cut short because the lock on the cluster is lost. A run does not end with it
// unless somebody stops it.
const cancelled = "CANCELLED"

// trace is what Go's runtime says of a program that it ends. What kgpu itself prints of others is indented.
var trace = regexp.MustCompile(`(?m)^(panic: |fatal error: |goroutine \d+)`)

// defect is what no fault explains about a run that is over; nil: nothing. killed says that the storm killed it: no end is
// expected of it then, and its last line may be cut off.
func (s *session) defect(killed bool) error {
	switch at := trace.FindStringIndex(s.stderr.String()); {
	case s.late:
		return fmt.Errorf("kgpu up was at work for longer than it may be, and was ended; the last it told: %s", s.doing)
	case at != nil:
		return fmt.Errorf("kgpu up died of a defect:\n%s", head(s.stderr.String()[at[0]:], 40))
	case s.malformed != "":
		return fmt.Errorf("kgpu up printed a line that is no event: %q", s.malformed)
	case killed:
		return nil
	case s.wasKilled():
		return errors.New("a signal that is not the storm's ended kgpu up: " + s.cmd.ProcessState.String())
	case s.cutOff != "":
		return fmt.Errorf("kgpu up did not write its last line to the end: %q", s.cutOff)
	case s.result.Event == "":
		return fmt.Errorf("kgpu up ended without a result: %s", s.why())
	}
	unexplained := func(e event) bool { return e.Reason != cancelled && !slices.Contains(s.explained, e.Reason) }
	switch i := slices.IndexFunc(s.errors, unexplained); {
	case i >= 0:
		return fmt.Errorf("no fault explains %s: %s", cmp.Or(s.errors[i].Reason, "an error without a reason"), s.why())
	case (s.exit() == 0) != (s.result.Reason == "ok"):
		return fmt.Errorf("the exit status does not go with the result: %s", s.why())
	case s.exit() != 0 && !slices.Contains(s.explained, s.result.Reason):
		return fmt.Errorf("no fault explains that kgpu up ended so: %s", s.why())
	}
	return nil
}
