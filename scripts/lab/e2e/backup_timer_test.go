package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// scheduled has the control plane make backups by itself. What it makes is an archive that kgpu restore takes; kgpu status tells how old it
// is, and kgpu doctor of a try that failed, in the host's words; without the section nothing of it is left but the archives.
func (c *cluster) scheduled(t *testing.T) {
	was := c.inventory
	defer func() { c.inventory = was }()
	c.inventory = filepath.Join(filepath.Dir(was), "backups.yaml")
	if err := os.WriteFile(c.inventory, []byte(read(t, was)+"\nbackup: {schedule: \"Mon,Thu 02:30\", keep: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.up(t)
	c.exec(t, "cp1", "systemctl start kgpu-backup; systemctl start kgpu-backup; systemctl list-timers --all | grep kgpu-backup.timer")
	if got := c.exec(t, "cp1", "cd /var/backups/kgpu; stat -c '%a %U' . *; ls -A | wc -l"); got != "700 root\n600 root\n2" {
		t.Errorf("what is kept is %s", got)
	}
	if last := c.lastBackup(t); last.Failed != "" || time.Since(last.Last) > 10*time.Minute {
		t.Errorf("status tells of %+v", last)
	}
	text, err := base64.StdEncoding.DecodeString(c.exec(t, "cp1", "base64 -w 0 /var/backups/kgpu/kgpu-backup-*"))
	if err != nil {
		t.Fatal(err)
	}
	archive := file(t, "made-by-a-timer.tar.gz", string(text))
	s := start(t, "", "restore", archive, "--output", "json", "-i", c.inventory)
	if code := s.wait(t); code != 3 || !strings.Contains(s.stderr.String()+s.stdout.String(), "nothing was changed") {
		t.Errorf("what the timer made is not taken for an archive: %d", code)
	}

	c.exec(t, "cp1", "mv /var/backups/kgpu /var/backups/away; mkdir /var/backups/kgpu; ! systemctl start kgpu-backup")
	if last := c.lastBackup(t); !strings.Contains(last.Failed, "is not mounted") {
		t.Errorf("status tells of %+v", last)
	}
	found := start(t, "", "doctor", "-i", c.inventory)
	found.wait(t)
	if said := found.stdout.String(); !strings.Contains(said, "BACKUP_OVERDUE") || !strings.Contains(said, "is not mounted") || !strings.Contains(said, "systemctl start kgpu-backup") {
		t.Errorf("doctor says\n%s", said)
	}
	c.exec(t, "cp1", "rmdir /var/backups/kgpu; mv /var/backups/away /var/backups/kgpu")
	c.inventory = was
	c.up(t)
	c.exec(t, "cp1", "! systemctl cat kgpu-backup.timer 2>/dev/null && [ ! -e /usr/local/sbin/kgpu-backup ] && [ ! -e /var/lib/kgpu/scheduled ] && rm /var/backups/kgpu/kgpu-backup-* && rmdir /var/backups/kgpu")
}

type lastBackup struct {
	Last   time.Time
	Failed string
}

// lastBackup is what kgpu status tells of the backups of cp1.
func (c *cluster) lastBackup(t *testing.T) lastBackup {
	t.Helper()
	s := start(t, "", "status", "--output=json", c.inventory)
	s.wait(t)
	var report struct {
		Hosts []struct {
			Host    string
			Backups *lastBackup
		}
	}
	if err := json.Unmarshal(s.stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	for _, h := range report.Hosts {
		if h.Backups != nil {
			return *h.Backups
		}
	}
	t.Fatal("status tells of no backups")
	return lastBackup{}
}
