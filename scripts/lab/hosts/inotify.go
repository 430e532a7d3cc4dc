package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/problem"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// All hosts of all labs share one limit of the machine. A host with too few
// left ends at its start, without a word.
const (
	inotifyLimit = "/proc/sys/fs/inotify/max_user_instances"
	machineDir   = "/run/kgpu-lab"
	machineLock  = machineDir + ".lock"
	// perHost was measured: a control plane takes about 28, a worker 16.
	perHost = 32
	forRest = 64
)

// inotifyRecord says who needs the limit raised and what it was before.
type inotifyRecord struct {
	Boot   string         `json:"boot"` // the machine's; an older record means nothing
	Before int            `json:"before,omitempty"`
	Set    int            `json:"set,omitempty"`
	Hosts  map[string]int `json:"hosts"` // by the lab's state folder
}

// reserveInotify sees to it that the limit is enough for this many hosts of the lab.
func (l *Lab) reserveInotify(hosts int) error {
	err := changeInotify(func(r *inotifyRecord) { r.Hosts[l.State] = hosts })
	if err == nil {
		return nil
	}
	return &problem.Problem{
		Step: fmt.Sprintf("raise %s for %d hosts", inotifyLimit, hosts), Reason: "LAB_INOTIFY_LIMIT", Err: err,
		Advice: "Use fewer hosts, or raise fs.inotify.max_user_instances where the machine allows it.",
	}
}

// releaseInotify gives the lab's share back; the last lab restores the limit.
func (l *Lab) releaseInotify() error {
	return changeInotify(func(r *inotifyRecord) { delete(r.Hosts, l.State) })
}

func changeInotify(change func(*inotifyRecord)) error {
	if err := os.MkdirAll(machineDir, 0o755); err != nil {
		return err
	}
	unlock, err := process.Lock(machineLock)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(machineDir, "inotify.json")
	boot, err := process.MachineBoot()
	if err != nil {
		return err
	}
	var r inotifyRecord
	if _, err := process.Load(path, &r); err != nil {
		return err
	}
	if r.Boot != boot {
		r = inotifyRecord{Boot: boot}
	}
	if r.Hosts == nil {
		r.Hosts = map[string]int{}
	}
	change(&r)
	need := forRest
	for state, n := range r.Hosts {
		if _, err := os.Stat(state); err != nil {
			delete(r.Hosts, state)
			continue
		}
		need += n * perHost
	}
	now, err := readInt(inotifyLimit)
	if err != nil {
		return err
	}
	switch {
	case len(r.Hosts) == 0:
		if r.Before != 0 && now == r.Set {
			err = writeInt(inotifyLimit, r.Before)
		}
		return errors.Join(err, os.RemoveAll(machineDir), os.Remove(machineLock))
	case now < need:
		if r.Before == 0 {
			r.Before = now
		}
		r.Set = need
		// The record first: a limit that is restored twice does no harm.
		if err := process.Save(path, r); err != nil {
			return err
		}
		return writeInt(inotifyLimit, need)
	}
	return process.Save(path, r)
}

func readInt(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

func writeInt(path string, n int) error {
	return os.WriteFile(path, []byte(strconv.Itoa(n)), 0o644)
}
