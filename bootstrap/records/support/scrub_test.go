package support

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	bootstrapToken = "abcdef.0123456789abcdef"
	jwt            = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.c2lnbmF0dXJl"
	notebookToken  = "0123456789abcdef0123456789abcdef0123456789abcdef"
	keyBody        = "MC4CAQAwBQYDK2VwBCIEIJ3Q4Xw1wB8dQk1cQ0mT2rXcV9h5m0sN3yq7lXvZbK1a"
	pem            = "-----BEGIN PRIVATE KEY-----\n" + keyBody + "\n-----END PRIVATE KEY-----\n"
)

// TestScrub holds for each kind of secret that it goes, and that what tells something about the fault stays.
func TestScrub(t *testing.T) {
	s := NewScrubber("s3cret+sudo/pass", "ab1", "proxy pässword", "R&B \"duo\" <3", "")
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, c := range []struct{ name, text, secret, stays string }{
		{"bootstrap token", "kubeadm join --token " + bootstrapToken + " --discovery", "0123456789abcdef", "kubeadm join"},
		{"bootstrap token in quotes", `token: "` + bootstrapToken + `"`, "0123456789abcdef", "token"},
		{"bootstrap token alone", "the token " + bootstrapToken + " expired", "0123456789abcdef", "the token abcdef."},
		{"key", "before\n" + pem + "after", keyBody, "after"},
		{"key of OpenSSH", strings.ReplaceAll(pem, "PRIVATE", "OPENSSH PRIVATE"), keyBody, ""},
		{"key whose end is missing", "before\n-----BEGIN RSA PRIVATE KEY-----\n" + keyBody, keyBody, "before"},
		{"key whose beginning is missing", keyBody + "\n-----END RSA PRIVATE KEY-----\nafter", keyBody, "after"},
		{"key in a journal", "Nov 21 -- w1 etcd[7]: -----BEGIN PRIVATE KEY-----\nNov 21 -- w1 etcd[7]: " + keyBody + "\nNov 21 -- w1 etcd[7]: -----END PRIVATE KEY-----\nafter", keyBody, "after"},
		{"key in a journal, cut off", "Nov 21 -- w1 etcd[7]: " + keyBody + "\nNov 21 -- w1 etcd[7]: -----END PRIVATE KEY-----\nafter", keyBody, "after"},
		{"key in JSON", `{"key":"` + strings.ReplaceAll(pem, "\n", `\n`) + `","other":1}`, keyBody, `"other":1`},
		{"kubeconfig", "    client-key-data: " + encode(pem) + "\nname: x", encode(pem)[:40], "name: x"},
		{"certificate of a kubeconfig", "client-certificate-data: LS0tLS1CRUdJTg==\n", "LS0tLS1CRUdJTg", "client-certificate-data"},
		{"bearer", "Authorization: Bearer abcdefghij0123 rest", "abcdefghij0123", "rest"},
		{"basic", "authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz", ""},
		{"service account", "got " + jwt + " from", "c2lnbmF0dXJl", "from"},
		{"password in a URL", "proxy http://joe:hunter22@proxy:3128/x", "hunter22", "http://joe:"},
		{"password with an at sign", "https://joe:hun@ter22@proxy/", "ter22", "@proxy/"},
		{"token in a URL", "https://ghp_abcdef123456@github.com/x", "ghp_abcdef123456", "github.com/x"},
		{"notebook's URL", "http://127.0.0.1:8888/lab?token=" + notebookToken + "&x=1", notebookToken, "x=1"},
		{"notebook's token alone", "c.ServerApp: " + notebookToken, notebookToken, "c.ServerApp"},
		{"assignment", "REGISTRY_PASSWORD=hunter22 next", "hunter22", "next"},
		{"assignment with separators", "REGISTRY_PASSWORD=hun,ter2;2&}x next", "ter2", "next"},
		{"assignment with separators, its end", "REGISTRY_PASSWORD=hun,ter2;2&}x next", "}x", "next"},
		{"password in YAML", "registry:\n  password: two words, of it\n  user: joe", "words", "user: joe"},
		{"password in YAML, its end", "  - proxy-passphrase: two words, of it\nnext", "of it", "next"},
		{"quoted assignment", `"password": "two words of it", "user": "joe"`, "words of it", `"user": "joe"`},
		{"apostrophes", `password = 'two words of it' # x`, "words of it", "# x"},
		{"docker's login", `{"auths":{"r":{"auth":"am9lOmh1bnRlcjIy"}}}`, "am9lOmh1bnRlcjIy", "auths"},
		{"certificate key", "--certificate-key " + strings.Repeat("0f", 32) + " end", "0f0f", "end"},
		{"secret of the inventory", "sudo: s3cret+sudo/pass: wrong", "s3cret", "wrong"},
		{"secret of the inventory in a URL", "q=s3cret%2Bsudo%2Fpass.", "s3cret", "q="},
		{"secret of the inventory in base64", "x " + encode("user=s3cret+sudo/pass;") + " y", encode("s3cret"), " y"},
		{"secret of the inventory in JSON", `{"text":"got R\u0026B \"duo\" \u003c3 here"}`, "duo", " here"},
		{"secret of the inventory as it is", `got R&B "duo" <3 here`, "duo", " here"},
		{"short secret", "pw ab1 ab1, not cab12", " ab1", "cab12"},
		{"letters with dots", "proxy pässword", "pässword", ""},
		{"output of a step", "O\tkube/token\ttoken\tYWJjZGVmLg==\nD\tkube/token", "YWJjZGVm", "D\tkube/token"},
		{"base64 of a file", "containerd-toml=" + encode(`[plugins."x".auth]`+"\n"+`password = "hunter22"`) + "\nnext=1", encode(`password = "hunter22"`)[4:20], "next=1"},
	} {
		got := string(s.Scrub([]byte(c.text)))
		if c.secret != "" && strings.Contains(got, c.secret) || !strings.Contains(got, c.stays) {
			t.Errorf("%s: %q became %q", c.name, c.text, got)
		}
	}
}

// TestScrubLeavesTheRest holds that logs stay readable.
func TestScrubLeavesTheRest(t *testing.T) {
	for _, text := range []string{
		"E1120 kubelet.go:123] container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady\n",
		`secret "notebook" not found` + "\n",
		"sha256:" + strings.Repeat("0123456789abcdef", 4),
		"https://pkgs.k8s.io/core:/stable:/v1.36/deb/ InRelease",
		"worker1\tReady\tcontrol-plane\t10.0.0.4\n",
		"Reached target basic.target - Basic System.",
		"commit 0123456789abcdef0123456789abcdef01234567",
		"ssh.service loaded active running OpenBSD Secure Shell server",
		"facts: e30gaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
		"MountVolume.SetUp failed for volume kube-api-access: tokens: 3",
	} {
		if got := string(NewScrubber().Scrub([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestScrubControls holds that reading a file of the bundle does nothing to a terminal.
func TestScrubControls(t *testing.T) {
	if got := string(NewScrubber().Scrub([]byte("a\x1b[2J\r\n\xff\u009b1m\x00\tb"))); got != "a^[[2J^M\n\uFFFD\uFFFD1m^@\tb" {
		t.Errorf("%q", got)
	}
}

// FuzzScrub puts secrets into whatever text there is.
func FuzzScrub(f *testing.F) {
	f.Add("kubeadm join ", " --x")
	f.Add("{\"a\":\"", "\"}")
	f.Add("-----BEGIN", "-----END PRIVATE KEY-----")
	f.Add("O\ta\tb", "\n")
	const known = "seeded-Secret_42"
	s := NewScrubber(known)
	f.Fuzz(func(t *testing.T, before, after string) {
		got := s.Scrub([]byte(before + " " + known + " " + bootstrapToken + " " + after))
		if text := string(got); strings.Contains(text, known) || strings.Contains(text, bootstrapToken) {
			t.Errorf("%q", text)
		}
		if !utf8.Valid(got) {
			t.Errorf("not UTF-8: %q", got)
		}
	})
}

// TestScrubbedJSON holds that the facts are JSON still.
func TestScrubbedJSON(t *testing.T) {
	facts, err := json.MarshalIndent(map[string]any{"Files": map[string]string{"token": "x\"y"}, "Daemon": []byte(`{"password":"hunter22"}`), "N": 3}, "", "  ")
	must(t, err)
	got := NewScrubber().Scrub(facts)
	if !json.Valid(got) {
		t.Errorf("no JSON: %s", got)
	}
	if strings.Contains(string(got), base64.StdEncoding.EncodeToString([]byte(`{"password":"hunter22"}`))) {
		t.Errorf("the password is there: %s", got)
	}
}

// corpus are the lines of a file of testdata that are no comments.
func corpus(t *testing.T, name string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if line[0] != '#' {
			lines = append(lines, strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "⏎", "\n"))
		}
	}
	return lines
}

// marked is a secret of the corpus.
var marked = regexp.MustCompile(`(?s)«(.*?)»`)

// marks are characters that stand between words, and may move.
var marks = strings.NewReplacer(`"`, " ", `\`, " ", "{", " ", "}", " ", ":", " ", ",", " ")

// TestScrubGoes holds that the secrets of the corpus go, and nothing but them.
func TestScrubGoes(t *testing.T) {
	for _, line := range corpus(t, "goes.txt") {
		got := string(NewScrubber().Scrub([]byte(strings.NewReplacer("«", "", "»", "").Replace(line))))
		for _, secret := range marked.FindAllStringSubmatch(line, -1) {
			for word := range strings.FieldsSeq(secret[1]) {
				if len(word) > 2 && strings.Contains(got, word) {
					t.Errorf("%q is left of %q: %q", word, line, got)
				}
			}
		}
		for _, rest := range marked.Split(line, -1) {
			for word := range strings.FieldsSeq(marks.Replace(rest)) {
				if !strings.Contains(got, word) {
					t.Errorf("%q went with %q: %q", word, line, got)
				}
			}
		}
	}
}

// TestScrubStays holds that what looks like a secret and is none is left alone.
func TestScrubStays(t *testing.T) {
	for _, line := range corpus(t, "stays.txt") {
		if got := string(NewScrubber().Scrub([]byte(line))); got != line {
			t.Errorf("%q became %q", line, got)
		}
	}
}
