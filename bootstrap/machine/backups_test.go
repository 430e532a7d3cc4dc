package machine

import (
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// TestBackupTrouble: a backup is overdue after two periods of its schedule, one that has only been set up has as long; a try that failed is
// told at once, with the last good one.
func TestBackupTrouble(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	for name, c := range map[string]struct {
		schedule inventory.Schedule
		backups  *facts.Backups
		want     []string
	}{
		"none wanted":     {"", &facts.Backups{Since: ago(900), Why: "no space"}, nil},
		"not set up":      {"daily", nil, nil},
		"well":            {"daily", &facts.Backups{Since: ago(900), Good: ago(47)}, nil},
		"just set up":     {"daily", &facts.Backups{Since: ago(47)}, nil},
		"never made one":  {"daily", &facts.Backups{Since: ago(49)}, []string{"no backup was made for 2d", "every 24h", "it never made one"}},
		"old":             {"daily", &facts.Backups{Since: ago(900), Good: ago(49), Archive: "/b/x"}, []string{"no backup was made for 2d", "the last good one is 2d", "/b/x"}},
		"weekly":          {"Sun 02:30", &facts.Backups{Since: ago(900), Good: ago(49)}, nil},
		"failed":          {"daily", &facts.Backups{Since: ago(900), Good: ago(20), Failed: ago(1), Why: "no space"}, []string{"the last backup failed: no space", "the last good one is 20h"}},
		"moved elsewhere": {"daily", &facts.Backups{Since: ago(900), Good: ago(20), Archive: "/b/x", Gone: true}, []string{"cannot be found any more: /b/x"}},
	} {
		s := &Set{Inventory: &inventory.Inventory{Backup: inventory.Backup{Schedule: c.schedule}}}
		got := strings.Join(s.BackupTrouble(&Machine{Facts: &facts.Host{Now: now, Backups: c.backups}}), "; ")
		if (got == "") != (c.want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q lacks %q", name, got, part)
			}
		}
	}
}
