package command

// examples are one or two lines for each command, as a person types them. --help shows them, and so does the man page.
var examples = map[string][]string{
	"kgpu init":                 {"kgpu init --user ubuntu 10.0.0.10 '10.0.0.[11-12]'", "kgpu init --file lab.yaml ubuntu@gpu1.lab:2222 ubuntu@gpu2.lab"},
	"kgpu validate":             {"kgpu validate"},
	"kgpu plan":                 {"kgpu plan", "kgpu plan --limit gpu1 --output json"},
	"kgpu up":                   {"kgpu up", "kgpu up --limit gpu1 --only 'driver/*'"},
	"kgpu add-control-plane":    {"kgpu add-control-plane 10.0.0.11 10.0.0.12"},
	"kgpu add-worker":           {"kgpu add-worker 10.0.0.15", "kgpu add-worker --user ubuntu --key ~/.ssh/lab '10.0.0.[16-18]'"},
	"kgpu upgrade":              {"kgpu upgrade 1.37", "kgpu upgrade 1.37 --check"},
	"kgpu smoke":                {"kgpu smoke"},
	"kgpu status":               {"kgpu status", "kgpu status -o wide --watch"},
	"kgpu notebook":             {"kgpu notebook"},
	"kgpu dashboard":            {"kgpu dashboard"},
	"kgpu kubeconfig":           {"kgpu kubeconfig --merge", "kgpu kubeconfig --file lab.kubeconfig"},
	"kgpu kubectl":              {"kgpu kubectl -- get nodes -o wide", "kgpu kubectl -- exec -it POD -- bash"},
	"kgpu ssh":                  {"kgpu ssh gpu1"},
	"kgpu user":                 {"kgpu user create alice"},
	"kgpu user create":          {"kgpu user create alice"},
	"kgpu user list":            {"kgpu user list"},
	"kgpu user delete":          {"kgpu user delete alice"},
	"kgpu backup":               {"kgpu backup", "kgpu backup --file lab.tar.gz.age --recipient age1…"},
	"kgpu restore":              {"kgpu restore kgpu-backup-kgpu-20260314-091500Z.tar.gz"},
	"kgpu certs":                {"kgpu certs", "kgpu certs --output json"},
	"kgpu certs renew":          {"kgpu certs renew"},
	"kgpu doctor":               {"kgpu doctor", "kgpu doctor gpu1 --fix"},
	"kgpu explain":              {"kgpu explain HOST_APT_LOCKED", "kgpu explain 65"},
	"kgpu runs":                 {"kgpu runs", "kgpu runs logs"},
	"kgpu runs list":            {"kgpu runs list --all"},
	"kgpu runs show":            {"kgpu runs show"},
	"kgpu runs logs":            {"kgpu runs logs", "kgpu runs logs 20260314-091500-a1b2c3 gpu1 driver/install"},
	"kgpu runs timeline":        {"kgpu runs timeline --open", "kgpu runs timeline --file timeline.html"},
	"kgpu attach":               {"kgpu attach"},
	"kgpu support":              {"kgpu support", "kgpu support --file kgpu-support.tar.gz"},
	"kgpu remove-control-plane": {"kgpu remove-control-plane cp2 cp3", "kgpu remove-control-plane --force cp2 cp3"},
	"kgpu remove-worker":        {"kgpu remove-worker gpu2"},
	"kgpu reset":                {"kgpu reset gpu2", "kgpu reset --yes"},
	"kgpu render":               {"kgpu render --out by-hand"},
	"kgpu schema":               {"kgpu schema > inventory.schema.json", "kgpu schema event"},
	"kgpu completion":           {"source <(kgpu completion bash)", "kgpu completion fish > ~/.config/fish/completions/kgpu.fish"},
	"kgpu man":                  {"kgpu man > kgpu.1"},
}

func exampleLines(command string) (text string) {
	for _, line := range examples[command] {
		text += line + "\n"
	}
	return text
}
