package reason

// Reasons of what is on the operator's machine: the inventory, what runs left there, and the run itself.
const (
	InventoryInvalid  ID = "INVENTORY_INVALID"
	SecretMissing     ID = "SECRET_MISSING"
	HistoryUnreadable ID = "HISTORY_UNREADABLE"
	RenderFolderTaken ID = "RENDER_FOLDER_TAKEN"
	HostBusy          ID = "HOST_BUSY"
	Cancelled         ID = "CANCELLED"
)

var operatorReasons = []Reason{
	{InventoryInvalid, 10,
		"The inventory, or the ssh_config that it is read with, cannot be read or says something that cannot be. kgpu found that before it contacted any host, and names every such line at once.",
		"correct the lines named above; `kgpu validate` checks the file without touching any host"},
	{SecretMissing, 11,
		"The inventory refers to a secret (a password, or the passphrase of a key) by an environment variable or a file, and that is not there or is empty.",
		"set the environment variable or create the file that the inventory refers to"},
	{HistoryUnreadable, 19,
		"What a former run left on this machine, or the recorded events that were named, cannot be read, or are not what kgpu wrote. The clusters are not touched by that.",
		"look at the file named above; runs are folders below ~/.local/state/kgpu/runs, of which any can be removed"},
	{RenderFolderTaken, 92,
		"The folder that `kgpu render` is to write is a file, cannot be made, or has files in it that it did not write.",
		"name another folder, or an empty one"},
	{HostBusy, 30,
		"Another run of kgpu is at work: it holds the cluster, or a unit of it holds the host. The message says whose run it is, from where, since when and what it does. Of a run that was killed while the link was cut, the host learns after 20 s of silence.",
		"`kgpu attach` shows what the other run does: wait for its end, then run the same command again"},
	{Cancelled, 130,
		"The run was stopped, by Ctrl-C or by another run. What the hosts had begun goes on there to its end, and they were given nothing more.",
		"run the same command again: it carries on where it stopped"},
}
