package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// token is a bootstrap token of kubeadm.
var token = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// watchArguments looks for tokens in the arguments of every process of kgpu and of the lab's hosts, until the returned function
// is called, which says where it found some.
func (l *lab) watchArguments() (found func() []string) {
	ctx, stop := context.WithCancel(context.Background())
	result := make(chan []string)
	go func() {
		seen := map[string]bool{}
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		machine := process.Recent{Proc: "/proc"}
		for ctx.Err() == nil {
			for _, dir := range machine.Changed() {
				arguments, err := os.ReadFile(filepath.Join(dir, "cmdline"))
				if err == nil && token.Match(arguments) && l.concerns(dir) {
					seen[strings.ReplaceAll(string(arguments), "\x00", " ")] = true
				}
			}
			<-ticker.C
		}
		var list []string
		for arguments := range seen {
			list = append(list, arguments)
		}
		result <- list
	}()
	return func() []string { stop(); return <-result }
}

// concerns tells whether a process, by its folder in /proc, is kgpu or one of the lab's hosts: those have the lab's folders
// mounted.
func (l *lab) concerns(process string) bool {
	program, _ := os.Readlink(process + "/exe")
	mounts, _ := os.ReadFile(process + "/mountinfo")
	return program == kgpuProgram || strings.Contains(string(mounts), l.State+"/hosts/")
}

// noSecrets wants none in what kgpu said, on the hosts' disks and in their journals.
func (c *cluster) noSecrets(t *testing.T, s *session, hosts ...string) {
	t.Helper()
	info, err := os.Stat(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the kubeconfig has mode %o, want 600", mode)
	}
	said := s.stdout.String() + s.stderr.String()
	if token.MatchString(said) {
		t.Errorf("kgpu printed a bootstrap token: %s", token.FindString(said))
	}
	key := c.k(t, "config", "view", "--raw", "-o", "jsonpath={.users[0].user.client-key-data}")
	if _, err := base64.StdEncoding.DecodeString(key); err != nil || key == "" {
		t.Errorf("the kubeconfig has no client key: %v", err)
	}
	if strings.Contains(said, key) {
		t.Error("kgpu printed the administrator's key")
	}
	const left = "-n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o name"
	if out := c.k(t, strings.Fields(left)...); out != "" {
		t.Errorf("bootstrap tokens are left: %s", out)
	}
	for _, h := range hosts {
		if out := c.exec(t, h, "runuser -u nobody -- find /var/lib/kgpu -readable 2>/dev/null || :"); out != "" {
			t.Errorf("%s: everybody may read\n%s", h, out)
		}
		for _, place := range []string{"grep -rhoEw %s /var/lib/kgpu || :", "journalctl --no-pager -o cat | grep -oEw %s || :"} {
			for _, match := range lines(c.exec(t, h, fmt.Sprintf(place, `'[a-z0-9]{6}\.[a-z0-9]{16}'`))) {
				if !strings.HasPrefix(match, h+".") { // the name of an event of the node
					t.Errorf("%s: %s finds the token %s", h, place, match)
				}
			}
		}
	}
}
