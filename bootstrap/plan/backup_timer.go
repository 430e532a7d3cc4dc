package plan

import (
	"encoding/json"
	"fmt"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// Files with which a control plane makes backups by itself.
const (
	backupProgram = "/usr/local/sbin/kgpu-backup"
	backupService = "/etc/systemd/system/kgpu-backup.service"
	backupTimer   = "/etc/systemd/system/kgpu-backup.timer"
)

// backupServiceText makes one backup. It waits for a kgpu that is at work; nothing that computes waits for it.
const backupServiceText = `# Makes a backup of the cluster, written by kgpu.
[Unit]
Description=Backup of the cluster
After=network-online.target remote-fs.target kubelet.service

[Service]
Type=oneshot
ExecStart=%s
TimeoutStartSec=3h
Nice=10
IOSchedulingClass=idle
UMask=0077
Environment=KGPU_TO=%s
Environment=KGPU_KEEP=%d
Environment=KGPU_CLUSTER=%s
Environment=KGPU_NODE=%s
Environment=KGPU_SOCKET=%s
Environment='KGPU_SETTINGS=%s'
`

// backupTimerText begins a backup at the times of the schedule; all control planes do, not at the same moment. One that was off then
// makes up for it.
const backupTimerText = `# Written by kgpu.
[Unit]
Description=Backups of the cluster

[Timer]
OnCalendar=%s
RandomizedDelaySec=10min
Persistent=true

[Install]
WantedBy=timers.target
`

// backups plans the timers by which control planes make backups by themselves, or their end. Each makes its own: none has to be up for
// the others', and whichever is left has one.
func (b *builder) backups() {
	for _, h := range b.planes {
		if h.waits {
			continue
		}
		if b.Inventory.Backup.Schedule == "" || !b.Minor.Secured() {
			b.noBackups(h)
			continue
		}
		to := b.Inventory.Backup.To
		values := map[string]string{"to": to, "node": h.node}
		if to == inventory.BackupFolder {
			values["own"] = "yes"
		}
		files := b.backupFiles(h)
		reasons := changed(h.Facts, files)
		if len(reasons) == 0 {
			reasons = h.NotRunning("kgpu-backup.timer")
		}
		b.unless(h, reasons, "its timer is there", graph.Step{Ref: graph.Ref{ID: "backup/timer"}, Input: graph.Input{Values: values, Files: files}})
	}
}

// noBackups plans the end of the backups that a control plane makes.
func (b *builder) noBackups(h *host) {
	if _, ok := h.Facts.Files[backupTimer]; ok || h.Facts.Backups != nil {
		b.add(h, graph.Step{Ref: graph.Ref{ID: "backup/timer-remove"}, Reason: "the inventory has no `backup` any more"})
	}
}

func (b *builder) backupFiles(h *host) map[string]graph.File {
	s := SettingsOf(b.Set)
	settings, err := json.Marshal(map[string]string{"runtime": s.Runtime, "network": s.Network, "podCIDR": s.PodCIDR, "serviceCIDR": s.ServiceCIDR})
	if err != nil {
		panic(err) // strings alone can be encoded
	}
	want := b.Inventory.Backup
	return map[string]graph.File{
		backupProgram: {Mode: 0o755, Content: scripts.Backup()},
		backupService: text(fmt.Sprintf(backupServiceText, backupProgram, want.To, want.Keep, b.Inventory.Cluster, h.node, b.criSocket(), settings)),
		backupTimer:   text(fmt.Sprintf(backupTimerText, want.Schedule)),
	}
}
