package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCardsInTrouble has hosts whose cards do not come easily: nouveau holds one until a reboot, Secure Boot wants signed
// modules for another, whose kernel is an old one, and has none for a third, and two list and do not compute; then a card is lost, and a
// driver hangs. The runtime is docker.
func TestCardsInTrouble(t *testing.T) {
	l := newLab(t, []string{"gpu", "docker", "noble"}, "--workers", "2", "--with", "ubuntu",
		"--gpus", "w1=1xT4,nouveau-busy", "--gpus", "w2=1xA100,secureboot", "--gpus", "ubuntu1=2xL40S,secureboot,oldkernel")
	d := desired{version: "1.36", runtime: "docker", network: "flannel", more: l.forCards()}
	cp, w1, w2, ubuntu := l.host("cp1", ""), l.host("w1", ""), l.host("w2", ""), l.host("ubuntu1", "")

	t.Run("unsigned modules under Secure Boot", func(t *testing.T) {
		before := l.snapshot(t, "cp1", "w2")
		l.refuses(t, d, refusal{hosts: []string{cp, w2}, exit: 102, reasons: []string{"w2 GPU_SECUREBOOT_UNSIGNED A100"}})
		l.unchanged(t, before)
	})
	t.Run("a driver that cannot run the card", func(t *testing.T) {
		l.refuses(t, d, refusal{hosts: []string{cp, w1}, more: "gpu: {driver: {source: ubuntu}}\n", exit: 101, reasons: []string{"w1 GPU_DRIVER_IMPOSSIBLE T4"}})
	})

	d.hosts = []string{cp, w1, ubuntu}
	c := newCluster(t, l, d)
	itsKernel := c.comesWithItsKernel(t, "ubuntu1", "w1")
	booted := l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id")
	must(t, "cards that only list", func(t *testing.T) {
		l.exec(t, "ubuntu1", "mkdir -p /etc/kgpu-lab; echo not-ready >/etc/kgpu-lab/gpu-faults")
		defer l.exec(t, "ubuntu1", ": >/etc/kgpu-lab/gpu-faults")
		s := kgpu(t, 193, "up", "--output", "json", c.inventory)
		listed := uuidOfCard.FindAllString(l.exec(t, "ubuntu1", "nvidia-smi -L"), -1)
		var told []string
		for _, e := range s.of("error") {
			if e.Reason != "SMOKE_CANNOT_COMPUTE" || e.Host != l.addr["ubuntu1"] || !strings.Contains(e.Text, "(error code system not yet initialized)") {
				t.Errorf("an error is %v", e)
			}
			told = append(told, uuidOfCard.FindString(e.Text))
		}
		slices.Sort(listed)
		slices.Sort(told)
		if len(listed) != 2 || !slices.Equal(told, listed) {
			t.Errorf("%q are told of, nvidia-smi lists %q", told, listed)
		}
		if len(s.cards()) != 0 {
			t.Errorf("proven are %q", s.cards())
		}
		itsKernel(t)
	})
	must(t, "up", func(t *testing.T) {
		s := c.up(t)
		c.ready(t, "cp1", "w1", "ubuntu1")
		c.offers(t, "cp1= ubuntu1=2 w1=1")
		if n := len(s.cards()); n != 3 {
			t.Errorf("%d cards are proven, want 3", n)
		}
		if now := l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id"); now == booted {
			t.Error("w1 did not reboot")
		}
		if source := l.exec(t, "ubuntu1", "dpkg-query -W -f '${Version}' libnvidia-compute-580-server"); !strings.Contains(source, "ubuntu") {
			t.Errorf("the driver of ubuntu1 is %s", source)
		}
		c.hasCUDA(t, s, "w1", "ubuntu1")
		if policy := l.exec(t, "ubuntu1", "apt-cache policy libnvidia-compute-580"); !strings.Contains(policy, "Candidate: (none)") {
			t.Errorf("ubuntu1 would take drivers from NVIDIA's repository:\n%s", policy)
		}
	})
	t.Run("up again", func(t *testing.T) { c.nothingIsDifferent(t, []string{"cp1", "w1", "ubuntu1"}) })
	t.Run("a card that is listed and does not compute", func(t *testing.T) {
		for _, h := range []string{"w1", "ubuntu1"} { // one of them has the notebook; the other pods of the proof read no memory
			l.exec(t, h, "echo ecc >/etc/kgpu-lab/gpu-faults")
			defer l.exec(t, h, ": >/etc/kgpu-lab/gpu-faults")
		}
		s := kgpu(t, 194, "smoke", "--output", "json", c.inventory)
		cannot := regexp.MustCompile(`CUDA [0-9.]+ lists cuda:0 .* and cannot compute on it: "RuntimeError: cuMemcpyDtoH_v2 returns 214" \(card GPU-`)
		if !slices.ContainsFunc(s.of("error"), func(e event) bool { return e.Reason == "NOTEBOOK_CANNOT_COMPUTE" && cannot.MatchString(e.Text) }) {
			t.Errorf("no error of the notebook's card: %v", s.of("error"))
		}
	})
	t.Run("a card that computes again", func(t *testing.T) { // and no proof is owed, which would wait for the driver that hangs
		s := kgpu(t, 0, "smoke", "--output", "json", c.inventory)
		if !slices.ContainsFunc(s.of("proof"), func(e event) bool { return notebookComputes.MatchString(e.Text) }) {
			t.Errorf("the notebook does not compute: %v", s.of("proof"))
		}
	})
	for _, fault := range []struct {
		name, words, reason, detail string
		long                        bool
	}{
		{"a driver hangs", "hang", "GPU_HUNG", "nvidia-smi does not answer", true}, // make test has scripts.TestDriverToolThatHangs
		{"a card is lost", "lost 1", "GPU_NOT_ALL_CARDS", "of 2 cards", false},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if fault.long {
				long(t)
			}
			l.exec(t, "ubuntu1", "echo "+fault.words+" >/etc/kgpu-lab/gpu-faults")
			defer l.exec(t, "ubuntu1", ": >/etc/kgpu-lab/gpu-faults")
			code := map[string]int{"GPU_NOT_ALL_CARDS": 107, "GPU_HUNG": 108}[fault.reason]
			s := kgpu(t, code, "up", "--output", "json", c.inventory)
			found := false
			for _, e := range s.of("error") {
				found = found || e.Reason == fault.reason && e.Host == l.addr["ubuntu1"] && strings.Contains(e.Text, fault.detail)
			}
			if !found {
				t.Errorf("no error %s of ubuntu1 with %q: %v", fault.reason, fault.detail, s.of("error"))
			}
		})
	}
	t.Run("a card that is back", func(t *testing.T) {
		l.exec(t, "ubuntu1", "echo lost 1 >/etc/kgpu-lab/gpu-faults")
		defer l.exec(t, "ubuntu1", ": >/etc/kgpu-lab/gpu-faults")
		c.awaitOffer(t, "cp1= ubuntu1=1 w1=1")
		l.exec(t, "ubuntu1", ": >/etc/kgpu-lab/gpu-faults")
		// The device plugin has given the card up, and does not take it back by itself.
		s := c.up(t)
		c.offers(t, "cp1= ubuntu1=2 w1=1")
		restarted := slices.ContainsFunc(s.of("log"), func(e event) bool {
			return e.Step == "gpu/ready" && strings.Contains(e.Text, "restarting the device plugin of ubuntu1")
		})
		if !restarted {
			t.Error("the device plugin of ubuntu1 was not restarted")
		}
	})
}
