package reason

// Reasons of backups, and what is made of them.
const (
	BackupFailed      ID = "BACKUP_FAILED"
	BackupTarget      ID = "BACKUP_TARGET"
	BackupOverdue     ID = "BACKUP_OVERDUE"
	BackupDamaged     ID = "BACKUP_DAMAGED"
	BackupNewer       ID = "BACKUP_NEWER"
	BackupLocked      ID = "BACKUP_LOCKED"
	BackupForeign     ID = "BACKUP_FOREIGN"
	RestoreFailed     ID = "RESTORE_FAILED"
	RestoreUnfinished ID = "RESTORE_UNFINISHED"
)

var backupReasons = []Reason{
	{BackupFailed, 97,
		"etcd gave no snapshot of its data, the snapshot is not whole, or the tools to take one are not in etcd's image. There is no archive.",
		"`kgpu status` and `kgpu doctor` say whether the control plane is well; then run `kgpu backup` again"},
	{BackupTarget, 212,
		"The directory of `backup.to` is not there, is not mounted, keeps nothing, or cannot be written to. The control plane makes no backups by itself.",
		"mount it, or make it, on the control plane that is named, or write another one as `backup.to`; then run `kgpu up` again"},
	{BackupOverdue, 213,
		"A control plane that is to make backups by itself has made none for two periods of its schedule, or its last try failed, or the last archive is gone.",
		"`journalctl -u kgpu-backup` on that host says more; when it is mended, `systemctl start kgpu-backup` there makes one at once"},
	{BackupDamaged, 225,
		"The archive is not what `kgpu backup` wrote: it was cut off, a byte of it has changed, or it is no archive of kgpu. Nothing was touched.",
		"take another copy of it, or an older backup"},
	{BackupNewer, 226,
		"The archive was written by a newer kgpu, in a format that this one does not know. Nothing was touched.",
		"restore it with a kgpu that is as new as the one that wrote it"},
	{BackupLocked, 227,
		"The archive is encrypted, and none of the age identities that kgpu was given opens it. Nothing was touched.",
		"name the file with the identity (AGE-SECRET-KEY-…) of one of its recipients: `kgpu restore FILE --identity KEYFILE`"},
	{BackupForeign, 228,
		"The archive is of another cluster than the inventory, or than the one that runs on its hosts. Nothing was touched.",
		"name the inventory of the archive's cluster; hosts that are to become that cluster leave theirs first: `kgpu reset`"},
	{RestoreFailed, 98,
		"A control plane could not be given the data of a backup: its programs do not end, the tools of etcd refuse the snapshot, or what was sent is not whole. The data that etcd had is in /var/lib/etcd or, by then, in /var/lib/etcd.before-TIME there.",
		"`kgpu runs logs` shows what the step printed; run the same `kgpu restore` again"},
	{RestoreUnfinished, 229,
		"A restore was begun on a control plane, and did not come to its end: its data may be the old one, the restored one, or none.",
		"run the same `kgpu restore` with the same archive again: it carries on where it stopped"},
}
