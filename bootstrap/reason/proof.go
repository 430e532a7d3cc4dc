package reason

// Reasons of the proof, and the notebook.
const (
	SmokeFailed           ID = "SMOKE_FAILED"
	SmokeImage            ID = "SMOKE_IMAGE"
	SmokeCardMissing      ID = "SMOKE_CARD_MISSING"
	SmokeCardTwice        ID = "SMOKE_CARD_TWICE"
	SmokeCardLeaked       ID = "SMOKE_CARD_LEAKED"
	SmokeCannotCompute    ID = "SMOKE_CANNOT_COMPUTE"
	NotebookNoCard        ID = "NOTEBOOK_NO_CARD"
	NotebookFailed        ID = "NOTEBOOK_FAILED"
	NotebookNoGPU         ID = "NOTEBOOK_NO_GPU"
	NotebookUnreachable   ID = "NOTEBOOK_UNREACHABLE"
	NotebookCannotCompute ID = "NOTEBOOK_CANNOT_COMPUTE"
	NotebookNoFramework   ID = "NOTEBOOK_NO_FRAMEWORK"
)

var proofReasons = []Reason{
	{SmokeFailed, 113,
		"A Job of the proof did not do what it was to do: its pod did not start or end, nvidia-smi failed or hung in it, its image has no program that computes, or it saw a GPU that no host has.",
		"the Job's own words are above; `kgpu smoke` runs the proof again"},
	{SmokeImage, 114,
		"A node could not pull the image of the proof or of the notebook: the kubelet reports ErrImagePull or the like.",
		"the nodes cannot pull the image: check the registry, the proxy, or `images: {registry: …}`"},
	{SmokeCardMissing, 115,
		"Every Job of the proof asked for a GPU, and together they did not see all of the host's.",
		"another pod may hold the GPU: `kubectl get pods -A -o wide`; else look at the device plugin's log"},
	{SmokeCardTwice, 116,
		"Two Jobs of the proof saw the same GPU, although the inventory does not share GPUs.",
		"the GPUs are shared between pods: look at the device plugin's settings"},
	{SmokeCardLeaked, 117,
		"A pod of the proof saw more GPUs than it asked for, or saw some and asked for none.",
		"pods see GPUs that they did not ask for: is nvidia the default runtime, or is NVIDIA_VISIBLE_DEVICES set?"},
	{SmokeCannotCompute, 193,
		"nvidia-smi lists the GPU in a pod, and it does not compute there: NVIDIA's sample that adds two vectors on it failed, got wrong sums, or did not end.",
		"the sample's own words are above, and `kgpu doctor` looks at the host's driver and fabric; `kgpu smoke` runs the proof again"},
	{NotebookNoCard, 120,
		"The notebook asks for one GPU, and none is free: other pods have them all.",
		"stop one of the pods named above, or set `notebook: {framework: none}` and go on without the notebook"},
	{NotebookFailed, 121,
		"The notebook's pod did not get ready, or its server did not do what kgpu asked of it, such as to start a kernel and compute in it.",
		"`kubectl -n kgpu-notebook describe pods` and `kubectl -n kgpu-notebook logs deploy/notebook` say more; `kgpu smoke` tries again"},
	{NotebookNoGPU, 122,
		"The notebook's kernel listed its devices, and no GPU is among them, or the listing failed.",
		"the image's libraries may not fit the driver or the GPU: name another `notebook: {version: …}` or `{image: …}`"},
	{NotebookUnreachable, 123,
		"The notebook runs, and its service does not answer on the control plane, from where kgpu asks through SSH, and which leads to every node's pods.",
		"look at kube-proxy and the pod network on the control plane, and at the address in `kubectl -n kgpu-notebook get service notebook`"},
	{NotebookCannotCompute, 194,
		"The notebook's framework lists a GPU and cannot compute on it: it has no code for GPUs of this kind, or its result was wrong. The message names the framework, the GPU, and what the framework says. Where nothing in the notebook but the driver itself lists the GPU, the GPU failed.",
		"`notebook: {framework: …}` names the other framework, `{version: …}` another release of this one, and `{image: …}` an image of your own, which the next `kgpu up` takes; where all of them fail, `kgpu doctor` looks at the GPU"},
	{NotebookNoFramework, 195,
		"The framework that the inventory asks for computes on none of the cluster's GPUs, or has no image for the hosts' processors. The message names the GPUs and their hosts. Nothing was changed.",
		"leave `notebook: {framework: …}` out and kgpu takes the one that computes, name an image of your own (`notebook: {image: …}`), or do without (`notebook: {framework: none}`)"},
}
