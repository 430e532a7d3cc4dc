package preflight

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestDisabledModules: a module that modprobe must not load is reported with the line that says so.
func TestDisabledModules(t *testing.T) {
	const overlay = "module-file=/lib/modules/6/modules.dep:/overlay.ko"
	for _, c := range []struct {
		name, inventory string
		lines           []string
		want            string
	}{
		{name: "a command that fails", lines: []string{overlay, "module-off=/etc/modprobe.d/cis.conf:7:install overlay /bin/false"},
			want: "HOST_MODULE_DISABLED module overlay, which containers need, is kept out by /etc/modprobe.d/cis.conf:7: install overlay /bin/false"},
		{name: "a command that does nothing", lines: []string{overlay, "module-off=/etc/modprobe.d/cis.conf:1:  install  overlay  /usr/bin/true # CIS"},
			want: "HOST_MODULE_DISABLED module overlay, which containers need, is kept out by /etc/modprobe.d/cis.conf:1: install  overlay  /usr/bin/true # CIS"},
		{name: "a blacklist, which the boot heeds", lines: []string{overlay, "module-off=/etc/modprobe.d/x.conf:3:blacklist br-netfilter"},
			want: "HOST_MODULE_DISABLED module br_netfilter, which every pod network needs, is kept out by /etc/modprobe.d/x.conf:3: blacklist br-netfilter"},
		{name: "no alias", lines: []string{overlay, "module-off=/etc/modprobe.d/x.conf:3:alias overlay off"}, want: "HOST_MODULE_DISABLED module overlay"},
		{name: "the kernel's command line", lines: []string{overlay, "module-off=/proc/cmdline:1:module_blacklist=nouveau,overlay"}, want: "HOST_MODULE_DISABLED module overlay, which containers need, is kept out by /proc/cmdline:1: module_blacklist=nouveau,overlay"},
		{name: "a command that loads it", lines: []string{overlay, "module-off=/etc/modprobe.d/x.conf:1:install overlay /sbin/modprobe --ignore-install overlay"}},
		{name: "loaded all the same", lines: []string{overlay, "module-loaded=overlay", "module-off=/etc/modprobe.d/cis.conf:7:install overlay /bin/false"}},
		{name: "not there at all", lines: []string{"module-off=/etc/modprobe.d/cis.conf:7:install overlay /bin/false"}, want: "HOST_MODULE_MISSING the kernel has no module overlay, which containers need"},
		{name: "the driver's", lines: []string{overlay, "pci=0000:17:00.0 030000 2204 -", "module-off=/usr/lib/modprobe.d/blacklist-nvidia.conf:2:blacklist nvidia"},
			want: "HOST_MODULE_DISABLED module nvidia, which the cards need, is kept out by /usr/lib/modprobe.d/blacklist-nvidia.conf:2: blacklist nvidia"},
		{name: "the driver's, where there are no cards", lines: []string{overlay, "module-off=/usr/lib/modprobe.d/blacklist-nvidia.conf:2:blacklist nvidia"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := saying(t, slices.Concat([]string{"module-file=/lib/modules/6/modules.dep:/br_netfilter.ko"}, c.lines)...)
			inv := decode(t, "network: flannel\n")
			found, g := judged(t, inv, f)
			if got := strings.Join(found, "; "); !strings.HasPrefix(got, c.want) || len(found) > 1 || c.want == "" && got != "" {
				t.Errorf("found %q, want %q", found, c.want)
			}
			for _, s := range g.Steps {
				if asked := strings.Fields(s.Input.Values["modules"]); s.Host == "w1" && s.ID == "os/modules" && slices.ContainsFunc(asked, func(m string) bool { return f.Modules[m] == facts.ModuleOff }) {
					t.Errorf("the step loads %q", asked)
				}
			}
		})
	}
}
