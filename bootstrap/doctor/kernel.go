package doctor

import (
	"regexp"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// hungTask matches the kernel's message about a stuck task.
// Source: gpud's regular expression for it, and check_hung_task in kernel/hung_task.c.
var hungTask = regexp.MustCompile(`(?:INFO: )?task ([^:]+(?::[^:]+)*):(\d+) blocked for more than \d+ seconds`)

// stackLines is within how many lines a stack names the driver.
const stackLines = 40

// ofDriver matches the driver's modules in a stack trace: "os_execute_work_item [nvidia]".
var ofDriver = regexp.MustCompile(`\[nvidia(_uvm|_modeset|_drm)?\]|\btask (nvidia|nv_queue|irq/\d+-nvidia|UVM )`)

// hung finds tasks that are stuck in the driver, by the kernel's log or because nvidia-smi does not answer.
func hung(s *examinee) []string {
	out := hungTasks(s)
	if len(out) > 0 && seesAll(s) { // the log may be old, and the kernel does not log when a task continues
		out = slices.Insert(out, 0, "since the host booted the kernel has said what follows; nvidia-smi answers now")
	}
	if driverHangs(s) {
		out = append(append(out, "nvidia-smi does not answer"), waitsInKernel(s)...)
	}
	return out
}

// stuck reports whether more than a timeout shows that the driver hangs. On a busy host nvidia-smi is only slow.
func stuck(s *examinee) bool { return len(hungTasks(s)) > 0 || len(waitsInKernel(s)) > 0 }

func waitsInKernel(s *examinee) []string {
	var out []string
	for _, process := range s.e.Stuck {
		if strings.Contains(process, "nvidia") {
			out = append(out, "waits in the kernel: process "+process)
		}
	}
	return out
}

// hungTasks returns the kernel's messages about tasks that are stuck in the driver.
func hungTasks(s *examinee) []string {
	var out []string
	log := s.e.KernelLog
	for i, line := range log {
		if !hungTask.MatchString(line) {
			continue
		}
		for j, of := range log[i:min(i+stackLines, len(log))] {
			if j > 0 && hungTask.MatchString(of) {
				break // the next task's message
			}
			if ofDriver.MatchString(of) {
				out = append(out, line)
				if j > 0 {
					out = append(out, of)
				}
				break
			}
		}
	}
	return out
}

func driverHangs(s *examinee) bool {
	if s.e.Asked {
		return facts.TimedOut(s.e.SMI)
	}
	return facts.TimedOut(s.f.NVIDIA.SMI)
}

// xid matches the driver's errors: "NVRM: Xid (PCI:0000:17:00): 79, pid=…, GPU has fallen off the bus."
var xid = regexp.MustCompile(`NVRM: Xid \([^)]*\): (\d+)`)

// xids finds Xids with one of these numbers.
func xids(numbers ...string) func(*examinee) []string {
	return func(s *examinee) []string {
		return logLines(s, func(line string) bool {
			m := xid.FindStringSubmatch(line)
			return m != nil && slices.Contains(numbers, m[1])
		})
	}
}

// applications are Xids that applications cause, so that neither the device plugin nor doctor takes them for failures
// of a card. Source: k8s-device-plugin 0.19, internal/rm/health.go.
var applications = []string{"13", "31", "43", "45", "68", "109"}

// otherXids finds Xids that no other row looks for and no application causes.
func otherXids(s *examinee) []string {
	return logLines(s, func(line string) bool {
		m := xid.FindStringSubmatch(line)
		return m != nil && !slices.Contains(applications, m[1]) && !slices.Contains([]string{"79", "119", "120"}, m[1])
	})
}

func fellOff(s *examinee) []string {
	return logLines(s, func(line string) bool {
		m := xid.FindStringSubmatch(line)
		return m != nil && m[1] == "79" || strings.Contains(line, "has fallen off the bus")
	})
}

var notSupported = regexp.MustCompile(`NVRM:?.*(not supported by|requires use of the NVIDIA open)`)

func unsupported(s *examinee) []string {
	if s.listedGPUs() >= s.cards && s.cards > 0 {
		return nil // it may be another card, of a display
	}
	return logLines(s, notSupported.MatchString)
}

func rejected(s *examinee) []string {
	if s.f.NVIDIA.Loaded != "" || s.cards == 0 {
		return nil
	}
	out := logLines(s, func(line string) bool {
		return strings.Contains(line, "Loading of module with unavailable key") || strings.Contains(line, "Key was rejected")
	})
	if len(out) > 0 && s.f.SecureBoot {
		out = append(out, "Secure Boot is on")
	}
	return out
}

func readOnly(s *examinee) []string {
	return logLines(s, func(line string) bool { return strings.Contains(line, "Remounting filesystem read-only") })
}

func outOfMemory(s *examinee) []string {
	return logLines(s, func(line string) bool {
		return strings.Contains(line, "Out of memory: Killed") && !strings.Contains(line, "Memory cgroup")
	})
}

var confined = regexp.MustCompile(`apparmor="DENIED".*(nvidia|cri-containerd|docker-default|containerd|runc)`)

func apparmor(s *examinee) []string { return logLines(s, confined.MatchString) }

// logLines returns the lines of the kernel's log for which is is true, without those that differ only in time.
func logLines(s *examinee, is func(string) bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, line := range s.e.KernelLog {
		_, text, ok := strings.Cut(line, "kernel: ")
		if !ok {
			text = line
		}
		if is(line) && !seen[text] {
			seen[text] = true
			out = append(out, line)
		}
	}
	return out
}
