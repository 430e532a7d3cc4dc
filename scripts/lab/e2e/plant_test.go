package e2e

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The exit statuses of kgpu doctor where it finds something.
const withErrors, withWarnings = 1, 2

// patience is how often kgpu doctor is asked, between the time from one to the next: it shares the machine with other tests.
const (
	patience = 30
	between  = 4 * time.Second
)

// fault is something that a test plants on a host.
type fault struct {
	name  string
	on    string // the host; empty: w1
	plant string // script on the host
	heal  string // script on the host, or byUp; empty: `kgpu doctor --fix` does it
	slow  bool   // kubelets and containers take their time to show it, or that it is over
	long  bool   // make test-all plants it: one like it is planted by make test
	group string // make test plants those of a group together, which have nothing to do with each other; make test-all one by one
	exit  int    // of kgpu doctor
	want  string // the finding, "host ID"
	also  string // IDs that may come with it, with blanks between: HOST_DRIFT always may
}

// byUp heals what kgpu doctor says that `kgpu up` heals.
const byUp = "kgpu up"

// together are the faults as they are to be planted: each by itself, or in the groups of make test.
func together(faults []fault) (planted [][]fault) {
	at := map[string]int{}
	for _, f := range faults {
		if i, ok := at[f.group]; ok && f.group != "" && testing.Short() {
			planted[i] = append(planted[i], f)
			continue
		}
		at[f.group] = len(planted)
		planted = append(planted, []fault{f})
	}
	return planted
}

// diagnoses plants faults, has kgpu doctor find each and nothing else, heals them, and has kgpu doctor find nothing.
func (c *cluster) diagnoses(t *testing.T, faults ...fault) {
	t.Helper()
	exit, slow := withWarnings, false
	var want, also []string
	for _, f := range faults {
		c.exec(t, cmp.Or(f.on, "w1"), f.plant)
		exit, slow = min(exit, f.exit), slow || f.slow
		want, also = append(want, f.want), append(also, strings.Fields(f.also+" HOST_DRIFT")...)
	}
	var code int
	var found []string
	missing := func(id string) bool { return !slices.Contains(found, id) }
	for range patience {
		look := start(t, "", "doctor", "--output=json", "-i", c.inventory)
		code = look.wait(t)
		if found = c.found(t, look); !slow || code == exit && !slices.ContainsFunc(want, missing) {
			break
		}
		time.Sleep(between)
	}
	if code != exit || slices.ContainsFunc(want, missing) {
		t.Errorf("found %v, status %d, want %v, %d", found, code, want, exit)
	}
	for _, one := range found {
		if _, id, _ := strings.Cut(one, " "); !slices.Contains(want, one) && !slices.Contains(also, id) {
			t.Errorf("found %s, too", one)
		}
	}
	fixes := false // what kgpu doctor --fix does, it does at once
	for _, f := range faults {
		switch {
		case f.heal == byUp:
			c.up(t)
		case f.heal != "":
			c.exec(t, cmp.Or(f.on, "w1"), f.heal)
		default:
			fixes = true
		}
	}
	if fixes && !slow {
		kgpu(t, 0, "doctor", "--fix", "--yes", "-i", c.inventory) // it looks again, at all hosts
		return
	}
	c.settles(t)
}

// settles waits until kgpu doctor finds nothing any more: it mends what the device plugin gave up meanwhile.
func (c *cluster) settles(t *testing.T) {
	t.Helper()
	for range patience {
		if start(t, "", "doctor", "--fix", "--yes", "-i", c.inventory).wait(t) == 0 { // it has looked again
			return
		}
		time.Sleep(between)
	}
	c.diagnosed(t, 0)
}

// standInForKernelLog has hosts tell a kernel's log of their own, a file for each boot: they share the machine's.
func (l *lab) standInForKernelLog(t *testing.T, hosts ...string) {
	t.Helper()
	for _, host := range hosts {
		l.exec(t, host, `cat >/usr/sbin/journalctl <<'END'
#!/bin/bash
read -r boot </proc/sys/kernel/random/boot_id
case " $* " in *" -k "*) cat "/etc/kgpu-lab/kernel-log-$boot" 2>/dev/null; exit 0 ;; esac
exec /usr/bin/journalctl "$@"
END
chmod 755 /usr/sbin/journalctl; mkdir -p /etc/kgpu-lab`)
	}
}

// kernelLog is a script that adds this to the log of the present boot.
func kernelLog(text string) string {
	return "read -r boot </proc/sys/kernel/random/boot_id; base64 -d >>/etc/kgpu-lab/kernel-log-$boot <<<" + base64.StdEncoding.EncodeToString([]byte(text))
}

const noKernelLog = "rm -f /etc/kgpu-lab/kernel-log-*"

// smi is a script that puts a stand-in before nvidia-smi: body may go on to the host's with `real "$@"`.
func smi(body string) string {
	return "cat >/usr/sbin/nvidia-smi <<'END'\n#!/bin/bash\nreal() { /usr/bin/nvidia-smi \"$@\"; }\n" + body + "\nEND\nchmod 755 /usr/sbin/nvidia-smi"
}

const noSMI = "rm /usr/sbin/nvidia-smi"

const (
	unload = "systemctl stop nvidia-fabricmanager nvidia-persistenced; rmmod nvidia_uvm nvidia; "
	load   = "modprobe nvidia; modprobe nvidia_uvm; systemctl start nvidia-persistenced nvidia-fabricmanager"
)

// edited is a script that changes a file of containerd's by sed, and has it read it.
func edited(file, expression string) string {
	return fmt.Sprintf("sed -i '%s' %s; systemctl restart containerd", expression, file)
}

const (
	mainFile = "/etc/containerd/config.toml"
	dropIn   = "/etc/containerd/conf.d/50-kgpu.toml"
)

// admin runs kubectl as the administrator on the control plane, where it leaves no cache.
const admin = "HOME=/proc/no-home kubectl --kubeconfig /etc/kubernetes/admin.conf "

// onCluster is a script on the control plane that applies an object.
func onCluster(object string) string {
	return admin + "apply -f - <<'END'\n" + object + "\nEND"
}

// notOnCluster deletes it.
func notOnCluster(kind, name string) string {
	return admin + "-n kube-system delete --wait=true " + kind + " " + name
}

// saying is a deployment on w1 of this name, whose pod has this label and says this.
func saying(name, label, text string) string {
	key, value, _ := strings.Cut(label, "=")
	return onCluster(fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %[4]q, "namespace": "kube-system"}, "spec": {
"selector": {"matchLabels": {"e2e": %[4]q}}, "template": {"metadata": {"labels": {"e2e": %[4]q, %[1]q: %[2]q}}, "spec": {"nodeName": "w1", "terminationGracePeriodSeconds": 0,
"containers": [{"name": "c", "image": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04", "command": ["bash", "-c", "echo '%[3]s'; exec sleep infinity"]}]}}}}`, key, value, text, name))
}
