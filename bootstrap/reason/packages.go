package reason

// Reasons of packages, and the repositories that they come from.
const (
	HostAptLocked       ID = "HOST_APT_LOCKED"
	HostDpkgBroken      ID = "HOST_DPKG_BROKEN"
	HostAptConfig       ID = "HOST_APT_CONFIG"
	HostAptHook         ID = "HOST_APT_HOOK"
	HostAptSource       ID = "HOST_APT_SOURCE"
	HostPackageHeld     ID = "HOST_PACKAGE_HELD"
	HostPackageNewer    ID = "HOST_PACKAGE_NEWER"
	HostPackagePinned   ID = "HOST_PACKAGE_PINNED"
	HostShadowed        ID = "HOST_SHADOWED"
	PackageMissing      ID = "PACKAGE_MISSING"
	RepoUnreachable     ID = "REPO_UNREACHABLE"
	RepoKeyMismatch     ID = "REPO_KEY_MISMATCH"
	RepoKeyExpired      ID = "REPO_KEY_EXPIRED"
	RepoContentMismatch ID = "REPO_CONTENT_MISMATCH"
	ChecksumMismatch    ID = "CHECKSUM_MISMATCH"
)

var packagesReasons = []Reason{
	{HostAptLocked, 65,
		"Another program, often unattended-upgrades, holds the lock of apt or dpkg. kgpu waited for it as long as `timeouts.lock` allows, and never ended it.",
		"another program is installing packages; kgpu waits for it, look at the process named above if it never ends"},
	{HostDpkgBroken, 66,
		"dpkg lists packages that are half-installed, after an installation that was cut off, or apt finds dependencies that are not met; nothing can be installed before that is put right. kgpu finishes what can be finished, which did not help here.",
		"kgpu ran `dpkg --configure -a` and `apt-get --fix-broken install`, which did not help: repair the packages named above, or remove them"},
	{HostAptConfig, 37,
		"apt cannot read one of its own files, or two of them contradict each other, and refuses all its work. The message names file and line.",
		"correct or remove the entry named above: apt refuses all its work until then"},
	{HostAptHook, 231,
		"A program that the host's owner has apt or dpkg run before, during or after its work (a hook, such as APT::Update::Pre-Invoke or DPkg::Pre-Install-Pkgs) fails, and apt gives up. The message names the file that has it. Hooks that would run after an update of the package lists are not run for kgpu's own.",
		"mend the program named above, or take the hook out of the file named above"},
	{HostAptSource, 232,
		"apt would take a package from a disc or a folder of the host, because one of its sources says so, and it is not there. The message has apt's words, and the file and the line.",
		"comment out the source at the line named above (or put in the disc, or mount the folder), and let the host have a mirror of its distribution beside it; then `apt-get update`"},
	{HostPackageHeld, 35,
		"A package that kgpu needs in another version is held at the one that is there, and it was not kgpu that held it.",
		"whoever holds the package named above decides: `apt-mark unhold PACKAGE` on the host lets kgpu have its version. A held Kubernetes may stay where the inventory names its version (`kubernetes: {version: …}`)"},
	{HostPackageNewer, 234,
		"A package is newer on the host than kgpu wants it. kgpu replaces no package by an older one.",
		"`apt-get remove PACKAGE` on the host lets kgpu install its own; a newer Kubernetes may stay where the inventory names its version (`kubernetes: {version: …}`)"},
	{HostPackagePinned, 36,
		"A file of apt's preferences keeps a package away that kgpu needs. The message names the file.",
		"remove the package named above from the file of apt's preferences, or the file: kgpu does not change pins of others"},
	{HostShadowed, 233,
		"The host has a program in /usr/local, or a unit of its own, that is run instead of the one of the same name that comes with the packages which kgpu installs. The message has the path. kgpu's own calls take the packages' programs; containerd, docker and systemd do not.",
		"move what is named above out of the way: `mv PATH PATH.old`, and after a unit `systemctl daemon-reload`"},
	{PackageMissing, 85,
		"apt does not offer a package, or not in the version that is wanted. The message says which versions there are.",
		"`apt-get update` on the host says whether its repositories answer. A package that follows the kernel is offered for newer kernels only: upgrade the host and reboot it. Where a version is missing, choose another, or name a mirror under `repositories:`"},
	{RepoUnreachable, 84,
		"A host could not fetch from a package repository or download a file: no connection, a failed transfer, a server whose certificate is not trusted, or an address that is not there.",
		"check DNS, the proxy and the firewall of the host, or name a mirror under `repositories:`"},
	{RepoKeyMismatch, 83,
		"A package repository is signed with a key that is not the one that kgpu knows or the inventory names, or that key was revoked, or no signature is there. Nothing was installed from it.",
		"the repository's key is not the one kgpu expects: check it, then name its fingerprint under `repositories:`"},
	{RepoKeyExpired, 94,
		"The key that signs a package repository has expired on the host, where apt refuses it. Owners extend a key beneath the same fingerprint; kgpu fetches one of its own repositories again when it has expired, and got the old one.",
		"a mirror of yours (`keyURL`) has to serve the key as its owner extended it: `curl KEYURL | gpg --show-keys` says when it ends; then run the same command again. Of a repository that is not kgpu's, put the new key where its `signed-by` says, or disable it. A host whose clock is ahead says so too early"},
	{RepoContentMismatch, 34,
		"A package or a list of a repository has another hash, size or signature than its owner signed: it was cut off or changed on the way, and it was so again when it was fetched once more. Nothing of it is installed.",
		"what came is not what the repository's owner signed: check the mirror, and the proxy in between, before you try again"},
	{ChecksumMismatch, 86,
		"A downloaded file has another SHA-256 than the catalog or the inventory says. It was thrown away.",
		"the download is not what kgpu expects: check the mirror, then name its sha256 under `repositories:`"},
}
