package reason

// Reasons of cards, their driver, and what hands them to pods.
const (
	GPUUnsupported        ID = "GPU_UNSUPPORTED"
	GPUDriverImpossible   ID = "GPU_DRIVER_IMPOSSIBLE"
	GPUSecureBootUnsigned ID = "GPU_SECUREBOOT_UNSIGNED"
	GPUDriverMissing      ID = "GPU_DRIVER_MISSING"
	GPUDriverForeign      ID = "GPU_DRIVER_FOREIGN"
	GPUDriverOther        ID = "GPU_DRIVER_OTHER"
	GPUDriverMismatch     ID = "GPU_DRIVER_MISMATCH"
	GPUNotAllCards        ID = "GPU_NOT_ALL_CARDS"
	GPUHung               ID = "GPU_HUNG"
	GPUModuleRejected     ID = "GPU_MODULE_REJECTED"
	GPUModuleBuild        ID = "GPU_MODULE_BUILD"
	GPUNoModules          ID = "GPU_NO_MODULES"
	GPUDriverStays        ID = "GPU_DRIVER_STAYS"
	GPUKernelNotBooted    ID = "GPU_KERNEL_NOT_BOOTED"
	GPUNouveauBusy        ID = "GPU_NOUVEAU_BUSY"
	GPUFabricFailed       ID = "GPU_FABRIC_FAILED"
	GPUFabricMissing      ID = "GPU_FABRIC_MISSING"
	GPUFabricIncomplete   ID = "GPU_FABRIC_INCOMPLETE"
	GPURuntimeMissing     ID = "GPU_RUNTIME_MISSING"
	GPUNotAllocatable     ID = "GPU_NOT_ALLOCATABLE"
	GPUMIGMismatch        ID = "GPU_MIG_MISMATCH"
	GPUCUDAImpossible     ID = "GPU_CUDA_IMPOSSIBLE"
)

var gpuReasons = []Reason{
	{GPUUnsupported, 100,
		"The host has a card for which no driver is offered for its release: too old for the drivers that there are, too new, or not in kgpu's table.",
		"put the card into a machine with a release that has a driver for it, or go on without it: `kgpu up --ignore GPU_UNSUPPORTED`"},
	{GPUDriverImpossible, 101,
		"The source, branch or flavour under `gpu.driver` does not go with the card, or cannot be had on the host's release.",
		"leave `gpu.driver` out and kgpu chooses one that fits the card"},
	{GPUSecureBootUnsigned, 102,
		"Secure Boot is on, so that the kernel loads signed modules only, and the modules of the driver for this card and release are not signed.",
		"turn Secure Boot off in the firmware, or use Ubuntu, whose archive has signed modules"},
	{GPUDriverMissing, 103,
		"The driver, or a part of it, is not on the host: its libraries, its module or its devices. With `gpu.driver.source: none` it is yours to install.",
		"install the driver, or leave `gpu.driver.source: none` out and kgpu does it"},
	{GPUDriverForeign, 104,
		"NVIDIA's .run installer put a driver on the host that does not work, or another one than the inventory asks for. Packages over it would leave a mixture of both, so kgpu left it alone.",
		"remove it with `nvidia-uninstall`, or repair it and set `gpu: {driver: {source: none}}`"},
	{GPUDriverOther, 105,
		"The driver that is there has to give way to the chosen one, and packages that are not of the driver depend on it and would have to go, too.",
		"remove the packages named above yourself (`apt-get purge`), or set `gpu: {driver: {source: none}}` to keep the driver"},
	{GPUDriverMismatch, 106,
		"The module that the kernel has loaded and the driver's libraries are of different versions, so that nothing can use the cards, and the module could not be exchanged because programs use it or there is none for the running kernel.",
		"an upgrade replaced the driver beneath running programs: drain the node and reboot it"},
	{GPUNotAllCards, 107,
		"The PCI bus has more NVIDIA cards than the driver sees. The message names those that are missing, and the driver's last words in the kernel's log.",
		"look for the card's Xid in `journalctl -k`; a card that fell off the bus needs a power cycle"},
	{GPUHung, 108,
		"A program of the driver, nvidia-smi or nvidia-ctk, gave no answer and could not be ended: it is stuck in the driver.",
		"the driver hangs: drain the node and reboot it; `journalctl -k` says which task is blocked"},
	{GPUModuleRejected, 109,
		"The kernel refused the driver's module because it does not trust its signature, as it does under Secure Boot.",
		"Secure Boot rejects the driver's module: turn it off in the firmware, or take the signed modules of Ubuntu's archive"},
	{GPUModuleBuild, 110,
		"The driver is installed, and there is no module of it for the running kernel: it was not built, or building it failed.",
		"there is no module for the kernel that runs: reboot if a newer kernel is installed; the end of a failed build's log is above"},
	{GPUNoModules, 200,
		"apt can install the driver neither with kernel modules that come built for the running kernel, nor with a newer kernel of its line that has such modules, nor, where the firmware lets modules run that nobody signed, with DKMS. Of each way that the host may take, the message says what it lacks. A host whose pods run is not rebooted for that.",
		"bring the host's packages up to date and reboot it (`apt-get update && apt-get full-upgrade`, then `reboot`), and run the same command again; a mirror may lack the package that is named above"},
	{GPUDriverStays, 202,
		"Another driver is to take the place of the one that is there, and apt would not install it on this host, by a simulation of removing the one and installing the other. The message has apt's words. Nothing was removed: the host works as before.",
		"mend what apt says above, or leave the driver as it is: take `gpu: {driver: …}` out of the inventory"},
	{GPUKernelNotBooted, 201,
		"The driver was installed with a newer kernel, for which its modules are, and the reboot started another one: the boot loader prefers it.",
		"look which kernel the boot loader starts (GRUB_DEFAULT in /etc/default/grub, `grub-editenv list`), reboot into the newest one, and run the same command again"},
	{GPUNouveauBusy, 111,
		"nouveau, the free driver that the kernel brings, has the cards and cannot be unloaded, most often because it shows the console.",
		"reboot the host: nouveau is blacklisted and does not come back"},
	{GPUFabricFailed, 118,
		"The host's cards are connected by NVSwitch or NVLink 5 and need the service nvidia-fabricmanager (nvidia-imex on GB200 and GB300), which does not start.",
		"`journalctl -u nvidia-fabricmanager` (`journalctl -u nvidia-imex`) on the host says why; its version must be the driver's"},
	{GPUFabricMissing, 205,
		"What sets up the NVLink fabric of the host's cards cannot be had: the driver's source has no fabric manager, NVIDIA's repository no nvlsm, or the running kernel no ib_umad. Without it CUDA fails on all cards with error 802.",
		"leave `gpu.driver` out, or take `gpu: {driver: {source: cuda}}`; a mirror (`repositories.cuda`) must have nvlsm, and the kernel's ib_umad is in linux-modules-extra of its version, or in a kernel of another line"},
	{GPUFabricIncomplete, 206,
		"Cards have not got their place in the NVLink fabric in time: nvidia-smi does not say `State: Completed`, `Status: Success` of them. CUDA fails on them with error 802, system not yet initialized.",
		"`nvidia-smi -q` (Fabric) and `journalctl -u nvidia-fabricmanager` on the host say more; the cards of GB200 and GB300 wait for the switch trays of their rack: see to its NMX controller. Then run `kgpu up` again"},
	{GPURuntimeMissing, 119,
		"The container toolkit is installed, and docker or containerd does not know the runtime `nvidia`, has it with other settings than runc, or has CDI turned off. kgpu looks at what they have loaded, not at their files.",
		"look at what the container runtime loaded: `containerd config dump`, `docker info`"},
	{GPUNotAllocatable, 112,
		"The node's GPUs did not become something that pods can ask for in time: the device plugin, which offers them to the kubelet, does not run or offers another number.",
		"look at the device plugin: `kubectl -n kube-system logs ds/nvidia-device-plugin`"},
	{GPUMIGMismatch, 124,
		"The GPUs are not cut into instances as `gpu.migStrategy: single` wants it: all GPUs of a host alike, or none. NVIDIA's device plugin would offer nothing.",
		"cut the GPUs into instances (`nvidia-smi mig`, nvidia-mig-parted) or turn MIG off (`nvidia-smi -mig 0`), or choose another `gpu.migStrategy`"},
	{GPUCUDAImpossible, 125,
		"The CUDA version under `gpu.cuda` does not compile for the GPU, is not made for the driver, or is not offered for the host's release.",
		"leave `gpu.cuda` out and kgpu chooses a version that driver and GPUs run, or `gpu: {cuda: none}` does without"},
}
