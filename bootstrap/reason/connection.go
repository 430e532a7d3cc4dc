package reason

// Reasons of the way to a host, and what it answers.
const (
	SSHUnreachable     ID = "SSH_UNREACHABLE"
	SSHHostKeyUnknown  ID = "SSH_HOST_KEY_UNKNOWN"
	SSHHostKeyMismatch ID = "SSH_HOST_KEY_MISMATCH"
	SSHAuthFailed      ID = "SSH_AUTH_FAILED"
	SSHCommandRefused  ID = "SSH_COMMAND_REFUSED"
	SSHSessionRefused  ID = "SSH_SESSION_REFUSED"
	SSHLost            ID = "SSH_LOST"
	SudoRefused        ID = "SUDO_REFUSED"
	FactsFailed        ID = "HOST_FACTS_FAILED"
	HostOutputTooLarge ID = "HOST_OUTPUT_TOO_LARGE"
	HostUnending       ID = "HOST_UNENDING"
)

var connectionReasons = []Reason{
	{SSHUnreachable, 20,
		"No SSH connection came about: the name does not resolve, nothing answers at the address and port, or the server hung up or fell silent before the login. The same is said when a bastion does not let kgpu through.",
		"check the address, the port and that the machine is on: `ssh USER@ADDRESS` from here"},
	{SSHHostKeyUnknown, 21,
		"The machine showed a host key that neither `hostKey:` in the inventory nor known_hosts has, so kgpu cannot know whether it is the right machine, and sent nothing to it.",
		"compare the fingerprint with the machine's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then run the same command on a terminal, which asks, or add it with `ssh-keyscan`, pin it as `ssh: {hostKey: …}`, or set `ssh: {hostKeyPolicy: accept-new}` in the inventory"},
	{SSHHostKeyMismatch, 22,
		"The machine showed another host key than the one that the inventory or known_hosts has for it, or one that is revoked there. kgpu broke off before the login.",
		"the machine was reinstalled, or somebody is in between: compare fingerprints before you remove the old line from known_hosts"},
	{SSHAuthFailed, 23,
		"The SSH server answered and refused the login: it took none of the keys that kgpu offered, which are the inventory's, the agent's and the usual files. The message lists what was tried.",
		"check `ssh.user` and `ssh.key`; the public key must be in the user's authorized_keys on the host"},
	{SSHCommandRefused, 220,
		"The login worked, and the host did not run the command that kgpu gave it, but something else in its place: the key has a forced command (many cloud images refuse root by one), the user's shell is nologin or a menu, the server has a ForceCommand, or the password has expired. The message has what the host said.",
		"log in as a user who may run commands: `ssh: {user: …}` in the inventory; `ssh USER@ADDRESS true` from here shows what the host says to any command"},
	{SSHSessionRefused, 221,
		"The login worked, and the SSH server opened no session on the connection, nor on a second one. kgpu needs a session for every command, and at times several at once; those that one connection is not allowed it opens on others.",
		"allow sessions in the host's sshd_config (`MaxSessions 10` is the usual value; `sshd -T` as root says what holds), or let a second connection in (`MaxStartups`, fail2ban, `ufw limit`), then restart sshd"},
	{SSHLost, 24,
		"A connection that worked ended or fell silent, and the host did not come back in time. What was begun on the host goes on there, in a systemd unit.",
		"check the network and run the same command again: it carries on where it stopped"},
	{SudoRefused, 25,
		"The login worked, and sudo did not let the user run a command as root: it is not installed, wants a password that the inventory does not name or another one, or does not allow it.",
		"give the user sudo rights, or name the password by reference: `sudoPassword: ${ENV}` under `ssh:` in the inventory"},
	{FactsFailed, 26,
		"The script that looks at a host, which changes nothing, failed there, or printed something that kgpu does not understand. Without it kgpu does not know what the host is, and does nothing to it.",
		"mend what the host's words above name (a program that it lacks, a disk that is full or broken, a shell's start-up file), then run the same command again; `ssh USER@ADDRESS bash --version` from here shows whether the host runs scripts at all"},
	{HostOutputTooLarge, 44,
		"A host answered a short question, or its steps told, more than there can be to say, and kgpu stopped to listen: such a host could otherwise fill the memory and the disk of the machine that kgpu runs on.",
		"the host says far more than there can be to say: look at its shell's start-up files, at the file or the step named above, and whether it is the machine that you think"},
	{HostUnending, 45,
		"A host answered and did not come to an end, long after the step that it was at had to be over.",
		"the host answers and does not come to an end: look at its load and its disks (`uptime`, `journalctl -p err`), then run the same command again"},
}
