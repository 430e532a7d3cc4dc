package status

import (
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// backups reports the backups that a control plane makes by itself.
func (j *reporter) backups(h *Host, s *Observed) {
	if s.Facts == nil || s.Facts.Backups == nil {
		return
	}
	b := s.Facts.Backups
	h.Backups = &Backups{Archive: oneLine(b.Archive), Failed: oneLine(b.Why)}
	if !b.Good.IsZero() {
		last := b.Good.UTC()
		h.Backups.Last = &last
	}
	if trouble := j.set.BackupTrouble(&s.Machine); len(trouble) > 0 {
		j.problem(h.Host, reason.BackupOverdue, strings.Join(trouble, "; "), "")
	}
}
