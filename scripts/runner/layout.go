package runner

import (
	"fmt"
	"path"
	"time"
)

// BatchFiles are the files of a batch's folder beside those of its steps. lib is what steps have in common, lock how long they
// wait for apt's.
func BatchFiles(lib []byte, lock time.Duration) map[string][]byte {
	return map[string][]byte{"start.sh": Start, "runner.sh": Runner, "follow.sh": Follow, "lib.sh": lib, "lock-timeout": wholeSeconds(lock)}
}

// StepFiles are the files of a step's folder. What the script reads as files, at their own paths, is beside them in files/.
func StepFiles(id string, timeout time.Duration, script []byte, values map[string]string) map[string][]byte {
	out := map[string][]byte{"id": []byte(id + "\n"), "timeout": wholeSeconds(timeout), "script.sh": script}
	for name, value := range values {
		out[path.Join("values", name)] = []byte(value)
	}
	return out
}

// wholeSeconds is a line with d in seconds, rounded up.
func wholeSeconds(d time.Duration) []byte {
	return fmt.Appendln(nil, int((d+time.Second-1)/time.Second))
}
