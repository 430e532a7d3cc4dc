// Package scripts holds what runs on hosts, as text.
package scripts

import (
	"embed"
	"fmt"
)

//go:embed access lib node steps environment.sh deprecated.sh facts.sh reach.sh virtual-ip.sh pods.sh status.sh doctor.sh support.sh render.sh
var files embed.FS

// library lists the parts of the library in the order in which they are read.
var library = []string{
	"base", "ledger", "files", "disk", "apt-lock", "apt-refuse", "dpkg", "apt", "downloads", "removed", "kept", "units", "runtime", "kernel", "nvidia", "driver-ways", "swap", "hosts", "endpoints", "etcd-members", "fetch", "keys", "rules", "static-pods", "keepalived", "cluster", "kubeadm", "upgrade", "members", "etcd-tools", "etcd", "backup", "pods", "images", "deployment", "drain", "leave", "defences", "join", "undo",
}

// Facts returns the script that prints the facts of a host; it wants to be the standard input of `bash -s`, run by root.
func Facts() []byte {
	return script("lib/nodes.sh", "lib/static-pods.sh", "facts.sh")
}

// Reach returns the script that tries endpoints, the repository of Kubernetes and ways to a driver; it wants to be the beginning
// of the standard input of `bash -s`, and what is to be tried the rest, a line each, as scripts/reach.sh says.
func Reach() []byte {
	return script("lib/driver-ways.sh", "lib/endpoints.sh", "reach.sh")
}

// VirtualIP returns the script that tells who has an address and which VRRP routers are heard; it wants to be the beginning of the
// standard input of `bash -s`, run by root, and the address with the host's own the rest, as scripts/virtual-ip.sh says.
func VirtualIP() []byte {
	return script("virtual-ip.sh")
}

// Pods returns the script that prints the pods which a drain of their node would move; it wants to be the standard input of
// `bash -s`, run by root on the control plane.
func Pods() []byte {
	return script("pods.sh")
}

// Deprecated returns the script that prints the versions of APIs that are to be removed and are in use, as the host's own API server
// counts them; it wants to be the standard input of `bash -s`, run by root on a control plane.
func Deprecated() []byte {
	return script("lib/static-pods.sh", "deprecated.sh")
}

// Status returns the script that prints what a host reaches over the pod network, and on the control plane what the API server
// knows of nodes and pods; it wants to be the standard input of `bash -s`, run by root.
func Status() []byte {
	return script("lib/pod-network.sh", "lib/nodes.sh", "status.sh")
}

// Support returns the script that prints what helps to find a fault; it wants to be the standard input of `bash -s`, run
// by root.
func Support() []byte {
	return script("support.sh")
}

// Render returns the script that runs the steps beside it by hand; it wants to be a file that is called as the list of its
// steps is.
func Render() []byte {
	return mustRead("render.sh")
}

// Doctor returns the script that prints what may be wrong with a host beyond its facts; it wants to be the standard input
// of `bash -s`, run by root.
func Doctor() []byte {
	return script("lib/pod-network.sh", "lib/nodes.sh", "doctor.sh")
}

// Watch returns the program that tells the cluster of a node's cards; it runs on the node.
func Watch() []byte {
	return script("node/gpu-watch.sh")
}

// Backup returns the program by which a control plane makes backups of itself; it runs there, by a timer.
func Backup() []byte {
	return script("lib/etcd-tools.sh", "lib/backup.sh", "node/backup.sh")
}

// Access returns the script called name that prints how something in the cluster is reached, such as "notebook"; it wants to be
// the standard input of `bash -s`, run by root on the control plane.
func Access(name string) []byte {
	return script("access/" + name + ".sh")
}

// Lib returns the library that every step reads.
func Lib() []byte {
	var paths []string
	for _, part := range library {
		paths = append(paths, "lib/"+part+".sh")
	}
	return script(paths...)
}

// Step returns the script called name, such as "os-swap".
func Step(name string) ([]byte, error) {
	text, err := files.ReadFile("steps/" + name + ".sh")
	if err != nil {
		return nil, fmt.Errorf("no script is called %q", name)
	}
	return text, nil
}

// script joins files behind the environment that all of them want.
func script(paths ...string) []byte {
	out := mustRead("environment.sh")
	for _, path := range paths {
		out = append(out, mustRead(path)...)
	}
	return out
}

func mustRead(path string) []byte {
	text, err := files.ReadFile(path)
	if err != nil {
		panic(err) // embedded when this was built
	}
	return text
}
