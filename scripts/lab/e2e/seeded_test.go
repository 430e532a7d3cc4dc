package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// TestSeededSecrets makes a cluster of one machine, lets it grow, and removes it. Its secrets are all known, and looked for in what
// kgpu says, in the arguments and the environment of every process meanwhile, and in files and journals of both sides afterwards.
// Every place has a canary that must be found.
func TestSeededSecrets(t *testing.T) {
	operator := operatorHome
	l := newLab(t, []string{"gpu"}, "--workers", "0", "--with", "password", "--gpus", "cp1=1xT4", "--gpus", "password1=1xT4")
	hosts := []string{"cp1", "password1"}
	fresh := l.snapshot(t, "cp1")
	known := secrets{}
	known.add("the sudo password", read(t, l.Password()))
	passphrase := rand.Text()
	known.add("the passphrase of the SSH key", passphrase)
	key := read(t, l.env["KGPU_LAB_KEY"])
	known.add("the SSH key", key)
	login := fmt.Sprintf("key: %q, passphrase: \"file:%s\"", file(t, "key", encrypted(t, key, passphrase)), file(t, "passphrase", passphrase+"\n"))
	d := desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.forCards() + "gpu: {cuda: none}\nnotebook: {idleTimeout: 1m}\n",
		hosts: []string{l.host("cp1", "ssh: {"+login+"}")},
	}
	c := newCluster(t, l, d)
	watched := l.watchProcesses(t)
	var runs []*session

	must(t, "up", func(t *testing.T) {
		s := kgpu(t, 0, "up", "-v", "--output", "json", c.inventory)
		runs = append(runs, s)
		c.ready(t, "cp1")
		if cards := s.cards(); len(cards) != 1 {
			t.Errorf("proven are %q, want one", cards)
		}
	})
	t.Run("one machine", c.aloneWithItsCard)
	must(t, "a worker comes", func(t *testing.T) {
		d.hosts = append(d.hosts, l.host("password1", "ssh: {"+login+", sudoPassword: \"file:"+l.Password()+"\"}"))
		l.write(t, filepath.Dir(c.inventory), d)
		s := start(t, "", "up", "-v", "--output", "json", c.inventory)
		runs = append(runs, s)
		s.await(t, "password1 joins", func(e event) bool { return e.Event == "step.start" && e.Step == "cluster/join" })
		const tokens = admin + "-n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token " +
			`-o go-template='{{range .items}}{{index .data "token-secret" | base64decode}}{{"\n"}}{{end}}'`
		for i, token := range lines(l.exec(t, "cp1", tokens)) {
			known.add(fmt.Sprintf("join token %d", i+1), token)
		}
		if known["join token 1"] == nil {
			t.Error("there is no join token to look for")
		}
		stops := c.unusedNotebook(t) // its minute begins anew if the proof at the end of the run uses it
		if code := s.wait(t); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		c.ready(t, hosts...)
		c.noSecrets(t, s, hosts...)
		c.known(t, known, hosts...)
		t.Run("the notebook, which nobody uses, has stopped", stops)
	})
	t.Run("for people", func(t *testing.T) {
		runs = append(runs, kgpu(t, 0, "smoke", "-v", c.inventory), kgpu(t, 0, "plan", "-v", c.inventory))
	})
	t.Run("a run that fails", func(t *testing.T) {
		l.exec(t, "password1", "dpkg --force-depends --remove conntrack; echo nonsense >/etc/apt/sources.list.d/e2e.list")
		runs = append(runs, kgpu(t, 37, "up", "-v", c.inventory), kgpu(t, 37, "up", "-v", "--output", "json", c.inventory))
		l.exec(t, "password1", "rm /etc/apt/sources.list.d/e2e.list")
		runs = append(runs, kgpu(t, 0, "up", "-v", c.inventory)) // for people, too: the package comes back
	})
	look := func(t *testing.T) {
		for _, h := range hosts {
			l.search(t, h, known)
		}
		if !searchFolder(t, operator, known) {
			t.Error("no recorded run was searched")
		}
		searchFolder(t, filepath.Dir(c.inventory), known)
	}
	t.Run("while there is a cluster", look)
	t.Run("reset", func(t *testing.T) {
		runs = append(runs, kgpu(t, 0, "doctor", "--install-watch", "-i", c.inventory))
		// A check that fails; the timer may have begun one that a start would only join.
		l.exec(t, "cp1", "systemctl stop kgpu-gpu-watch.service; chmod -x /usr/local/sbin/kgpu-gpu-watch; ! systemctl start kgpu-gpu-watch.service")
		runs = append(runs, kgpu(t, 0, "reset", "-v", "--yes", "--inventory", c.inventory))
		l.unchanged(t, fresh)
		if left := l.exec(t, "cp1", "systemctl list-units --all --plain --no-legend 'kgpu-gpu-watch*'"); left != "" {
			t.Errorf("systemd still knows %s", left)
		}
	})
	t.Run("after reset", look)
	t.Run("what kgpu said", func(t *testing.T) {
		for _, s := range runs {
			said := s.stdout.String() + s.stderr.String()
			if said == "" {
				t.Errorf("kgpu %s said nothing", strings.Join(s.args, " "))
			}
			for name, needles := range known {
				text := said
				if name == "the notebook's token" && !slices.Contains(s.args, "json") {
					text = strings.ReplaceAll(text, "/?token="+needles[0], "") // people are told where their notebook is
				}
				if contains(text, needles) {
					t.Errorf("kgpu %s printed %s", strings.Join(s.args, " "), name)
				}
			}
		}
	})
	t.Run("processes", func(t *testing.T) { watched(known) })
}

// secrets are what must be found nowhere: by a name that can be told, the texts that give a secret away.
type secrets map[string][]string

// add adds a secret. Of a key in PEM one line will do, which is in all certificates if it is the first ones of a long key.
// In base64 a text has three forms, by where it begins.
func (s secrets) add(name, secret string) {
	secret = strings.TrimSpace(secret)
	if body := lines(secret); strings.HasPrefix(secret, "-----BEGIN") {
		secret = body[1]
		if len(body) > 6 {
			secret = body[len(body)*2/3]
		}
	}
	needles := []string{secret}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, before), secret...))
		needles = append(needles, encoded[(before*8+5)/6:(before+len(secret))*8/6])
	}
	s[name] = needles
}

func contains(text string, needles []string) bool {
	return slices.ContainsFunc(needles, func(n string) bool { return strings.Contains(text, n) })
}

// masked is a text that gives no secret away.
func (s secrets) masked(text string) string {
	for name, needles := range s {
		for _, n := range needles {
			text = strings.ReplaceAll(text, n, "<"+name+">")
		}
	}
	return text
}

// known adds the secrets that came with the cluster.
func (c *cluster) known(t *testing.T, s secrets, hosts ...string) {
	t.Helper()
	s.add("the notebook's token", c.notebookToken(t))
	for _, path := range lines(c.exec(t, "cp1", "ls /etc/kubernetes/pki/*.key /etc/kubernetes/pki/etcd/*.key")) {
		s.add(path, c.exec(t, "cp1", "cat "+path))
	}
	for _, user := range []string{"admin", "super-admin", "controller-manager", "scheduler"} {
		encoded := c.exec(t, "cp1", "sed -n 's/ *client-key-data: //p' /etc/kubernetes/"+user+".conf")
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(text) == 0 {
			t.Errorf("%s.conf has no key: %v", user, err)
			continue
		}
		s.add("the key of "+user+".conf", string(text))
	}
	for _, h := range hosts {
		s.add("the kubelet's key of "+h, c.exec(t, h, "sed -n '/BEGIN.*PRIVATE KEY/,$p' /var/lib/kubelet/pki/kubelet-client-current.pem"))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// encrypted is the same private key with a passphrase.
func encrypted(t *testing.T, key, passphrase string) string {
	t.Helper()
	plain, err := ssh.ParseRawPrivateKey([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(plain, "e2e", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// canary is what every search must find.
const canary = "e2e-canary-0f6c2a"

// places are searched on a host: what everybody may read, what is kgpu's and what is logged, and the journal with the
// arguments of those who wrote to it. The texts come by standard input. Of a find it prints place, file and text.
const places = `
dir=$(mktemp -d /root/e2e.XXXXXX)
cat >"$dir/patterns"
trap 'rm -rf "$dir" "${planted[@]}"' EXIT
planted=()
plant() {
  for folder in "${@:2}"; do
    [ -d "$folder" ] || continue
    echo ` + canary + ` >"$folder/e2e-canary"
    chmod 644 "$folder/e2e-canary"
    planted+=("$folder/e2e-canary")
    printf 'planted\t%s\t%s\n' "$1" "$folder/e2e-canary"
  done
}
found() { sed -nE "s/^([^:]*):(.*)$/found\t$1\t\1\t\2/p"; }
plant everybody /etc /run /tmp /var/tmp /var/log
plant own /var/lib/kgpu /var/log
systemd-cat echo ` + canary + `
journalctl --sync
printf 'planted\tjournal\tjournal\n'
runuser -u nobody -- find /etc /run /tmp /var /var/log /var/tmp /home /root /opt -xdev -type f -readable -size -64M -print0 2>/dev/null |
  xargs -0 -r grep -aoHFf "$dir/patterns" -- 2>/dev/null | found everybody
{ [ ! -d /var/lib/kgpu ] || grep -raoHFf "$dir/patterns" /var/lib/kgpu; grep -raoHFf "$dir/patterns" --exclude-dir=journal /var/log; } | found own
journalctl --no-pager --all -o verbose | grep -aoFf "$dir/patterns" | sort -u | sed 's/^/journal:/' | found journal
`

// search looks for secrets on a host.
func (l *lab) search(t *testing.T, host string, known secrets) {
	t.Helper()
	name := map[string]string{canary: canary}
	for secret, needles := range known {
		for _, n := range needles {
			name[n] = secret
		}
	}
	cmd := labCommand(t.Context(), l.Name, "exec", host, "bash", "-c", places)
	cmd.Stdin = strings.NewReader(strings.Join(slices.Collect(maps.Keys(name)), "\n") + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", host, err, known.masked(errs.String()))
	}
	planted, seen := map[string]bool{}, map[string]bool{}
	for _, line := range lines(string(out)) {
		switch f := strings.Split(line, "\t"); {
		case f[0] == "planted":
			planted[f[1]+"\t"+f[2]] = true
		case f[3] == canary:
			seen[f[1]+"\t"+f[2]] = true
		default:
			if what := f[1] + " " + f[2] + " has " + name[f[3]]; !seen[what] {
				seen[what] = true
				t.Errorf("%s: %s", host, what)
			}
		}
	}
	if len(planted) < 7 {
		t.Errorf("%s: canaries in %d places only", host, len(planted))
	}
	for place := range planted {
		if !seen[place] {
			t.Errorf("%s: %s is not searched: its canary was not found", host, place)
		}
	}
}

// searchFolder looks into what others may read of the operator's, and into what runs recorded, whoever may read it.
func searchFolder(t *testing.T, folder string, known secrets) (inRecords bool) {
	t.Helper()
	bird := filepath.Join(folder, "e2e-canary")
	if err := os.WriteFile(bird, []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(bird)
	seen := false
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a run of another test, which has ended
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || info.Mode()&0o044 == 0 && !strings.Contains(path, recorded) {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		text := string(content)
		inRecords = inRecords || strings.Contains(path, recorded)
		seen = seen || text == canary
		for name, needles := range known {
			if contains(text, needles) {
				t.Errorf("%s has %s", path, name)
			}
		}
		return nil
	})
	if err != nil || !seen {
		t.Errorf("%s is not searched: %v", folder, err)
	}
	return inRecords
}

// recorded is in the paths of what runs record.
const recorded = "/.local/state/kgpu/runs/"

// watchProcesses collects the arguments and the environment of every process of the machine, and so of every host, until
// the returned function is called, which looks for secrets in them.
func (l *lab) watchProcesses(t *testing.T) func(secrets) {
	t.Helper()
	var mu sync.Mutex
	tokens := map[string]bool{}      // arguments of kgpu and of the lab's hosts: other tests have processes, too
	collected := map[string]string{} // text: cmdline or environ
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		machine := process.Recent{Proc: "/proc"}
		for {
			for _, dir := range machine.Changed() {
				for _, name := range []string{"cmdline", "environ"} {
					if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
						mu.Lock()
						if _, known := collected[string(text)]; !known && name == "cmdline" && token.Match(text) && l.concerns(dir) {
							tokens[string(text)] = true
						}
						collected[string(text)] = name
						mu.Unlock()
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
			}
		}
	}()
	has := func(name, what string) bool {
		mu.Lock()
		defer mu.Unlock()
		for text, in := range collected {
			if in == name && strings.Contains(text, what) {
				return true
			}
		}
		return false
	}
	bird := exec.Command("sleep", "600")
	bird.Args = []string{canary + "-argument", "600"}
	bird.Env = []string{"E2E=" + canary + "-environment"}
	if err := bird.Start(); err != nil {
		t.Fatal(err)
	}
	for !has("cmdline", canary+"-argument") || !has("environ", canary+"-environment") {
		time.Sleep(30 * time.Millisecond)
	}
	_ = bird.Process.Kill()
	_ = bird.Wait()
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }); <-stopped }
	t.Cleanup(end)
	return func(known secrets) {
		end()
		for text, in := range collected {
			shown := known.masked(strings.ReplaceAll(text, "\x00", " "))
			if tokens[text] {
				t.Errorf("a token among arguments: %s", shown)
			}
			for name, needles := range known {
				// The notebook has its own token from its Secret.
				own := name == "the notebook's token" && in == "environ" && strings.Contains(text, "JUPYTER_TOKEN="+needles[0])
				if contains(text, needles) && !own {
					t.Errorf("%s is in a process's %s: %.300s", name, in, shown)
				}
			}
		}
	}
}
