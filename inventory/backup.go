package inventory

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// Backup says when control planes make backups by themselves, and where they keep them. Without a schedule they make none.
type Backup struct {
	Schedule Schedule
	Keep     int    // how many archives of its own a control plane keeps; default 7
	To       string // a directory on each control plane; default BackupFolder
}

// BackupFolder is where backups go that are to go nowhere else.
const BackupFolder = "/var/backups/kgpu"

const (
	keptBackups    = 7
	maxKeptBackups = 1000
)

// Schedule is a time that comes again, as systemd reads it in OnCalendar=.
type Schedule string

func backupKeys() keys[Backup] {
	return keys[Backup]{
		"schedule": value(func(b *Backup) *Schedule { return &b.Schedule }, schedule),
		"keep":     integer(func(b *Backup) *int { return &b.Keep }, 1, maxKeptBackups),
		"to":       value(func(b *Backup) *string { return &b.To }, backupFolder),
	}
}

// backup decodes the section. It is there for its schedule.
func backup(d *decoder, f *file, n *yaml.Node, path string) {
	mapping(d, n, path, backupKeys(), &f.Backup)
	f.backsUp, f.backsUpWhen = n.Kind == yaml.MappingNode, d.nodes[join(path, "schedule")] != nil || d.failed(path)
}

// checkBackup refuses a section that makes no backups, and an older Kubernetes, which has none.
func (f *file) checkBackup(m catalog.Minor) findings {
	switch {
	case !f.backsUp:
		return nil
	case !m.Secured():
		return found("backup", "backups are for Kubernetes 1.%d and newer, not for %s: leave the section out",
			catalog.SecuredSince, f.Kubernetes.Version.MinorString())
	case !f.backsUpWhen:
		return found("backup", "has no schedule: add `schedule: daily`")
	}
	return nil
}

// weekdays are the names of days as systemd has them, from Monday on.
var weekdays = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// Forms of systemd.time(7) that a schedule may have: a word, or a time of day, on some days of the week only.
var (
	scheduleWords = []string{"hourly", "daily", "weekly"}
	scheduleTime  = regexp.MustCompile(`^(?:((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:,(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun))*) )?([01][0-9]|2[0-3]):[0-5][0-9]$`)
)

func schedule(s string) (Schedule, error) {
	if slices.Contains(scheduleWords, s) || scheduleTime.MatchString(s) {
		return Schedule(s), nil
	}
	return "", fmt.Errorf("%s is no schedule: write hourly, daily, weekly, a time of day such as \"02:30\", or one with days such as \"Mon,Thu 02:30\"", shown(s))
}

// Period is the longest time between two backups; zero: there is no schedule.
func (s Schedule) Period() time.Duration {
	const day = 24 * time.Hour
	switch s {
	case "":
		return 0
	case "hourly":
		return time.Hour
	case "weekly":
		return 7 * day
	}
	days, _, found := strings.Cut(string(s), " ")
	if !found {
		return day
	}
	var at []int
	for name := range strings.SplitSeq(days, ",") {
		at = append(at, slices.Index(weekdays, name))
	}
	slices.Sort(at)
	longest := at[0] + len(weekdays) - at[len(at)-1]
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i]-at[i-1])
	}
	return time.Duration(longest) * day
}

// notForBackups are directories that keep nothing, or that belong to what is backed up.
var notForBackups = []string{"/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp", "/var/run", "/var/lib/etcd", "/var/lib/kgpu", "/var/lib/kubelet", "/etc/kubernetes"}

var folderName = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$`)

func backupFolder(s string) (string, error) {
	if !folderName.MatchString(s) || path.Clean(s) != s {
		return "", fmt.Errorf("%s is no directory of a control plane, such as /mnt/backups/lab: an absolute path of letters, digits, dots, hyphens and underscores", shown(s))
	}
	for _, other := range notForBackups {
		if s == other || strings.HasPrefix(s, other+"/") {
			return "", fmt.Errorf("%s is no place for backups: what is below %s is lost with what is backed up, or sooner", s, other)
		}
	}
	return s, nil
}
