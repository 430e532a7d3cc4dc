package machine

import (
	"cmp"
	"fmt"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/duration"
)

// latePeriods is after how many periods of the schedule a backup is overdue: one may have failed, or come late.
const latePeriods = 2

// BackupTrouble is what is wrong with the backups that a control plane makes by itself, a line each: why the last try failed, that none
// was made lately, that the last one is not where it was made.
func (s *Set) BackupTrouble(m *Machine) (out []string) {
	period := s.Inventory.Backup.Schedule.Period()
	if period == 0 || m.Facts == nil || m.Facts.Backups == nil {
		return nil
	}
	b := m.Facts.Backups
	if b.Why != "" {
		out = append(out, "the last backup failed: "+b.Why)
	}
	last := b.Good
	if b.Since.After(last) {
		last = b.Since // it had no more time yet
	}
	if age := m.Facts.Now.Sub(last); age > latePeriods*period {
		out = append(out, fmt.Sprintf("no backup was made for %s, and the inventory wants one at least every %s", duration.Age(age), duration.Age(period)))
	}
	if b.Gone {
		out = append(out, "the last good backup cannot be found any more: "+b.Archive)
	}
	if len(out) > 0 && !b.Gone {
		out = append(out, cmp.Or(lastGood(b.Good, m.Facts.Now, b.Archive), "it never made one"))
	}
	return out
}

func lastGood(at, now time.Time, archive string) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("the last good one is %s old: %s", duration.Age(now.Sub(at)), archive)
}
