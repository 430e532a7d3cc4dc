package scripts

import (
	"strings"
	"testing"
)

// A full file system is found by what programs say, and by itself when they say something else, or nothing.
func TestVerdictOfAFullDisk(t *testing.T) {
	t.Parallel()
	const full = `
mkdir -p /var/lib/containerd /var/lib/kubelet
mount -t tmpfs -o size=2m tmpfs /var/lib/containerd
mkdir /var/lib/containerd/blobs
head -c 1500K /dev/zero >/var/lib/containerd/blobs/layer
`
	const fill = `head -c 9M /dev/zero >/var/lib/containerd/rest 2>/dev/null || true; `
	for _, c := range []struct {
		name, script string
		want         []string // none: no verdict
	}{
		{"the words name a file that is gone by now", full + `printf 'L\tcluster/init\tfailed: write /var/lib/containerd/ingest/1/data: no space left on device\n' | disk_verdict STEP_FAILED pull`,
			[]string{"HOST_DISK_FULL\t/var/lib/containerd has 548KiB of 2.0MiB free; most is in /var/lib/containerd (1.5MiB); failed: write"}},
		{"the words name no file", full + fill + `printf 'L\tx\t%s\n' 'E: No space left on device' | disk_verdict REPO_UNREACHABLE apt`,
			[]string{"HOST_DISK_FULL\t/var/lib/containerd has 0B of 2.0MiB free;", "No space left on device"}},
		{"apt's own words", full + fill + `printf 'L\tx\t%s\n' "E: You don't have enough free space in /var/lib/containerd/." | disk_verdict STEP_FAILED ''`,
			[]string{"HOST_DISK_FULL\t/var/lib/containerd has "}},
		{"no words, but a file system is full", full + fill + `disk_verdict STEP_FAILED 'kubeadm init: timed out' </dev/null`,
			[]string{"HOST_DISK_FULL\t/var/lib/containerd has 0B", "kubeadm init: timed out"}},
		{"a reason that is better", full + fill + `echo out | disk_verdict HOST_PORT_TAKEN '' || echo none`, nil},
		{"nothing is full", `mkdir -p /var/lib/kubelet; disk_places=(/dev); echo out | disk_verdict STEP_FAILED '' || echo none`, nil},
		{"another host's disk", full + `of_other_hosts; printf 'L\tx\tnode w1: no space left on device\n' | disk_verdict HOST_DISK_FULL 'node w1' || echo none`, nil},
		{"what is waited for", full + `printf 'W\tx\tnode w1: no space left on device\n' | disk_verdict NOTEBOOK_FAILED '' || echo none`, nil},
		{"a password", full + fill + `printf 'L\tx\t%s\n' 'E: http://user:hidden@mirror/x No space left on device' | disk_verdict '' ''`,
			[]string{"http://mirror/x"}},
		{"no inodes", `mkdir -p /var/lib/containerd; mount -t tmpfs -o size=9m,nr_inodes=3 tmpfs /var/lib/containerd; touch /var/lib/containerd/{a,b}
printf 'L\tx\t%s\n' 'touch: /var/lib/containerd/c: No space left on device' | disk_verdict '' ''`,
			[]string{"HOST_INODES_FULL\t/var/lib/containerd has none of its 3 inodes free"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			r := s.ok(s.script(c.script))
			lacks(t, r.output, "hidden")
			if c.want == nil && r.output != "none\n" {
				t.Errorf("verdict %q", r.output)
			}
			for _, want := range c.want {
				if !strings.Contains(r.output, want) || strings.Count(r.output, "\n") != 1 {
					t.Errorf("verdict %q, want one line with %q", r.output, want)
				}
			}
		})
	}
}

// The biggest come first, what cannot be counted in time before all, and three are enough.
func TestBiggestUsers(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	r := s.ok(s.script(`
mkdir -p /srv/x; mount -t tmpfs -o size=30m tmpfs /srv
for i in 1 2 3 4; do mkdir /srv/$i; head -c ${i}M /dev/zero >/srv/$i/data; done
disk_users=(/srv/1 /srv/2 /srv/3 /srv/4 /srv/none /usr)
disk_biggest /srv
timeout() { if [[ $* == *'/srv/1' ]]; then return 124; fi; command timeout "$@"; }
disk_biggest /srv`))
	want := "/srv/4 (4.0MiB), /srv/3 (3.0MiB), /srv/2 (2.0MiB)\n/srv/1 (too many files to count), /srv/4 (4.0MiB), /srv/3 (3.0MiB)\n"
	if r.output != want {
		t.Errorf("%q, want %q", r.output, want)
	}
}

// A clock that is set while a step runs takes no time away from it. SECONDS follows the clock.
func TestSecondsLeftDoNotFollowTheClock(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write(stepDir+"/timeout", "600\n")
	r := s.ok(s.script(`SECONDS=3600; left=$(seconds_left); [[ $left -gt 500 && $left -le 585 ]] || echo "$left"; SECONDS=-3600; left=$(seconds_left); [[ $left -le 585 ]] || echo "$left"`))
	if r.output != "" {
		t.Errorf("seconds left: %s", r.output)
	}
}
