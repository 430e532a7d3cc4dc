package render

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// takesCredentials reports whether the turn needs credentials that another one makes.
func (t *hostScript) takesCredentials() bool {
	return slices.ContainsFunc(t.steps, func(s *step) bool { return len(s.placeholders) > 0 })
}

// makesCredentials reports whether the turn makes credentials for others.
func (t *hostScript) makesCredentials() bool {
	return slices.ContainsFunc(t.steps, func(s *step) bool { return s.ID == tokenStep })
}

func (t *hostScript) reboots() bool {
	return slices.ContainsFunc(t.steps, func(s *step) bool { return s.Script == "driver-reboot" })
}

// credentialsFor returns the hosts to whose folders the turn's credentials must be copied.
func (t *hostScript) credentialsFor(all []*hostScript) []string {
	var out []string
	for _, other := range all {
		if t.makesCredentials() && other.host != t.host && other.takesCredentials() && !slices.Contains(out, other.host) {
			out = append(out, other.host)
		}
	}
	return out
}

// nextAction tells a person what to do after a turn.
func nextAction(all []*hostScript, i int) string {
	var b strings.Builder
	if hosts := all[i].credentialsFor(all); len(hosts) > 0 {
		fmt.Fprintf(&b, "Copy join.env from this folder into the folder of %s. It lets a host join the cluster until the token is deleted: keep it to root.\n", strings.Join(hosts, ", "))
	}
	if i+1 < len(all) {
		fmt.Fprintf(&b, "Next: %s.sh on %s.\n", all[i+1].name, all[i+1].host)
	} else {
		b.WriteString("This was the last one. On the control plane: kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes\n")
	}
	return b.String()
}

// readme explains in which order the scripts are run on which hosts, and what is copied between them.
func readme(inv *inventory.Inventory, g *graph.Graph, all []*hostScript) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The cluster %s, by hand\n\n", inv.Cluster)
	fmt.Fprintf(&b, "`kgpu render` wrote this: what `kgpu up` would do now for Kubernetes %s with %s and the pod network\n"+
		"%s, as scripts to be run by hand. They are kgpu's own, and leave the hosts as it would: `kgpu plan` says afterwards what\n"+
		"is left to do, `kgpu reset` takes all of it back. What is written here is made for the hosts as they were: render it again\n"+
		"when they, or the inventory, have changed.\n\n",
		inv.Kubernetes.Version, inv.Runtime, inv.Network)
	for _, w := range g.Warnings {
		fmt.Fprintf(&b, "> %s\n\n", printable.Line(w))
	}
	b.WriteString("## In this order\n\n1. Copy each host's folder to the host, with its modes (`scp -rp`, `tar`).\n")
	for i, t := range all {
		fmt.Fprintf(&b, "%d. On %s: `sudo bash %s/%s.sh`", i+2, t.host, t.host, t.name)
		var notes []string
		if t.takesCredentials() && strings.HasPrefix(t.name, worker) {
			notes = append(notes, "with `join.env` in the folder")
		}
		if t.reboots() {
			notes = append(notes, "it may reboot the host: then run it again")
		}
		if len(notes) > 0 {
			fmt.Fprintf(&b, ", %s", strings.Join(notes, "; "))
		}
		b.WriteString(".")
		if hosts := t.credentialsFor(all); len(hosts) > 0 {
			fmt.Fprintf(&b, " Then copy `%s/join.env`, which it writes, into the folder of %s: as root, it has mode 0600.", t.host, strings.Join(hosts, ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nHosts whose scripts follow each other may be done at the same time, but for those that drain or reboot nodes. A script that\n" +
		"fails says why; run it again when that is mended, it carries on. The steps run in a systemd unit: a lost connection stops nothing.\n" +
		"The token in `join.env` lives for " + plan.TokenLife + ", or until the control plane's later run deletes it; its earlier run makes another one.\n")
	b.WriteString("\n## Afterwards\n\nThe administrator's kubeconfig is `/etc/kubernetes/admin.conf` on the control plane.")
	if g.Has(plan.NotebookStep) {
		fmt.Fprintf(&b, " The notebook's token, which is made there, is in the\nSecret `notebook` of the namespace `%s`.", catalog.NotebookNamespace)
	}
	b.WriteString("\n")
	b.WriteString("\n## What each script does\n")
	for _, t := range all {
		fmt.Fprintf(&b, "\n### %s: %s.sh\n\n", t.host, t.name)
		for _, s := range t.steps {
			fmt.Fprintf(&b, "- `%s`: %s (%s)\n", s.folder, printable.Line(s.Title), printable.Line(s.Reason))
		}
	}
	b.WriteString("\nA folder of a step has `script.sh`, which reads `values/` (a kubeadm configuration, a manifest, names) and puts `files/` into\n" +
		"place; `late` names what is filled in from `join.env`.\n")
	return b.String()
}
