package report

import (
	"fmt"
	"io"
	"time"
)

// User is somebody who may work in a namespace.
type User struct {
	Name      string
	Namespace string
	Role      string
	Until     time.Time // end of the certificate; zero: not known
}

// printed writes whole lines for people.
func printed(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(On(w), format, args...)
	return err
}

// PrintUsers writes a table of users; where there are none, the command that makes one.
func PrintUsers(w io.Writer, users []User, create string) error {
	if len(users) == 0 {
		return printed(w, "there are no users yet: %s\n", create)
	}
	p, g := On(w), grid{rows: [][]string{{"USER", "NAMESPACE", "ROLE", "CERTIFICATE ENDS"}}}
	for _, u := range users {
		until := "-"
		if !u.Until.IsZero() {
			until = u.Until.Format(time.DateOnly)
		}
		g.rows = append(g.rows, []string{u.Name, u.Namespace, u.Role, until})
	}
	p.grid(g)
	return p.to.err
}

// PrintKubeconfig says where the kubeconfig is, and how it is used.
func PrintKubeconfig(w io.Writer, file string) error {
	return printed(w, "%s: kubectl --kubeconfig %s get nodes\n", file, file)
}

// PrintMerged says which context leads to the cluster now.
func PrintMerged(w io.Writer, file, context string) error {
	return printed(w, "%s has the context %s: kubectl --context %s get nodes\n", file, context, context)
}

// PrintTunnel says what leads to the API server, and for how long.
func PrintTunnel(w io.Writer, file, address string) error {
	return printed(w, "%s leads to the API server, through SSH, as long as this runs:\n\n  kubectl --kubeconfig %s get nodes\n\n%s goes with it. Ctrl-C ends it.\n", address, file, file)
}

// PrintOpened says where something in the cluster is opened with a browser. token is what it asks for; empty: the URL has it.
// It leads there through SSH, as long as kgpu runs. port is one of every node that leads there, too; zero: none does.
func PrintOpened(w io.Writer, what, url, token string, port uint16) error {
	secret := "\nThe address has the token in it: who knows it can do there what you can.\n"
	if token != "" {
		secret = fmt.Sprintf("\nIt asks for a token, which is secret:\n\n%s\n", token)
	}
	rest := "nothing is exposed. Ctrl-C ends it."
	if port != 0 {
		rest = "Ctrl-C ends it.\n" + plainPort(port)
	}
	return printed(w, "%s: %s\n%s\nThis leads there through SSH as long as this runs; %s\n", what, url, secret, rest)
}

// PrintStopped says that the notebook has no pod, and which command starts it again.
func PrintStopped(w io.Writer, start string) error {
	return printed(w, "the notebook is stopped, and its GPU is free: `%s` starts it again\n", start)
}

// plainPort says what a port of the nodes is.
func plainPort(port uint16) string {
	return fmt.Sprintf("Port %d of every node leads there, too, in plain HTTP: who listens on the way hears the token.", port)
}

// PrintNoBrowser says that no browser came up.
func PrintNoBrowser(w io.Writer, why error) error {
	return printed(w, "No browser was opened (%v): open the address yourself.\n", why)
}

// PrintNotebook writes what the notebook does on its card and where to open it. tunnel is the command that must run meanwhile, stop
// the one that gives the card back; port is one of every node that leads there, too; zero: none does.
func PrintNotebook(w io.Writer, does, url, tunnel, stop string, port uint16) error {
	also := ""
	if port != 0 {
		also = plainPort(port) + "\n"
	}
	return printed(w, "\nThe notebook %s\n%s\nwhile `%s` runs, which leads there through SSH; it has a card until `%s`\n%s", does, url, tunnel, stop, also)
}

// PrintBundle writes what is in the bundle of kgpu support, and what to do with it.
func PrintBundle(w io.Writer, file string, size int64, told, hosts int) error {
	return printed(w, `%s: %s, from %d of %d hosts
It has the inventory, what the last runs told here, and of each host: facts, the list of kgpu's changes, events of the last runs, logs of the kubelet, the runtime, kgpu and the kernel, disks, network, cards, settings; from the control plane: nodes, pods, events.
Secrets that kgpu knows or recognises were scrubbed. Names and addresses are in it: look through it before you pass it on.
`, file, megabytes(size), told, hosts)
}

// PrintBackup writes what has become of a backup.
func PrintBackup(w io.Writer, file string, size int64, encrypted bool, told, hosts int) error {
	who := "It is not encrypted: who reads it rules the cluster, and reads its Secrets. Keep it where only you can."
	if encrypted {
		who = "It is encrypted: without an identity of one of its recipients it cannot be read, by you either. Keep that elsewhere."
	}
	return printed(w, "%s: %s, from %d of %d hosts\n%s\n", file, megabytes(size), told, hosts, who)
}

func megabytes(size int64) string {
	if size < 100_000 {
		return fmt.Sprintf("%d kB", (size+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(size)/1e6)
}
