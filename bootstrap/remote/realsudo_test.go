package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// The password of the user that exists for these tests only, and what crypt(3) makes of it.
const (
	testPassword = "swordfish x"
	testHash     = `$6$kgputest$zoqADnuDlJnQJs.esSG7sn28lAAEsG2dZ54X8V8hamEWR3gdfFVvtvdoVwWYQKvLP6QJjH2dOZOgq/oK9gTdD1`
	testUser     = "kgpu-test"
)

// privateAccounts are run before sshd, in a mount namespace of its own: there, and only there, the machine has the user
// and the sudoers file from the directory $1, and sudo remembers nobody. It needs root.
const privateAccounts = `set -e
for f in passwd group shadow sudoers; do mount --bind "$1/$f" "/etc/$f"; done
mkdir -p /run/sudo
mount -t tmpfs none /run/sudo
shift
exec "$@"`

// startSudoHost starts sshd where testUser has these rights, and describes the login.
func startSudoHost(t *testing.T, sudoers string) inventory.Host {
	t.Helper()
	dir := t.TempDir()
	for name, line := range map[string]string{
		"passwd": testUser + ":x:60123:60123::/:/bin/sh\n",
		"group":  testUser + ":x:60123:\n",
		"shadow": testUser + ":" + testHash + ":20000:0:99999:7:::\n",
	} {
		data, err := os.ReadFile("/etc/" + name)
		must(t, err)
		mode := os.FileMode(0o644)
		if name == "shadow" {
			mode = 0o600
		}
		must(t, os.WriteFile(filepath.Join(dir, name), append(data, line...), mode))
	}
	quiet := "Defaults !mail_badpass, !mail_no_user, !syslog\n"
	must(t, os.WriteFile(filepath.Join(dir, "sudoers"), []byte(quiet+sudoers+"\n"), 0o440))
	s := startSSHDIn(t, []string{"unshare", "--mount", "sh", "-c", privateAccounts, "sh", dir})
	// By certificate: the user could not read an authorized_keys file in a directory of root's.
	in := s.host
	in.SSH.User, in.SSH.Key = testUser, filepath.Join(dir, "id")
	key := sshtest.NewKey()
	key.Write(t, in.SSH.Key)
	writeFile(t, in.SSH.Key+"-cert.pub", publicLine(certify(t, s.authority, key.PublicKey(), ssh.UserCert, testUser)))
	return in
}

func TestRealSudo(t *testing.T) {
	const withPassword, without, nothing = testUser + " ALL=(ALL) ALL", testUser + " ALL=(ALL) NOPASSWD: ALL", ""
	for _, tc := range []struct {
		name, sudoers, password string
		detail                  string // of the refusal; empty: it works
	}{
		{"no password needed", without, "", ""},
		{"no password needed, one given", without, testPassword, ""},
		{"password", withPassword, testPassword, ""},
		{"password missing", withPassword, "", "sudo asks for a password"},
		{"password wrong", withPassword, "trout", "sudo does not take the password"},
		{"no rights", nothing, "", "sudo asks for a password"}, // before it tells
		{"no rights, with a password", nothing, testPassword, "the user may not use sudo"},
		{"other rights", testUser + " ALL=(ALL) NOPASSWD: /bin/true", "", "sudo asks for a password"},
		{"other rights, with a password", testUser + " ALL=(ALL) /bin/true", testPassword, "the user may not use sudo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := startSudoHost(t, tc.sudoers)
			if tc.password != "" {
				in.SSH.SudoPassword = secretOf(t, "${SUDO}")
			}
			d, events := newDialer(t, Options{Secret: func(inventory.Secret) (string, error) { return tc.password, nil }})
			h := dialWith(t, d, in)
			stdin := strings.Repeat("data\n", 100_000)
			for range 2 { // the second time sudo may remember the first
				var stdout, stderr bytes.Buffer
				err := h.Run(context.Background(), Command{
					Name: "test", Line: "id -u; echo problem >&2; cat", Root: true,
					Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
				})
				var e *reason.Error
				switch {
				case tc.detail != "" && (!errors.As(err, &e) || e.ID != reason.SudoRefused || !strings.Contains(e.Detail, tc.detail)):
					t.Errorf("%v, want %q", err, tc.detail)
				case tc.detail == "" && err != nil:
					t.Error(err)
				case tc.detail == "" && (stdout.String() != "0\n"+stdin || stderr.String() != "problem\n"):
					t.Errorf("stdout %.20q (%d bytes), stderr %q", stdout.String(), stdout.Len(), stderr.String())
				}
				if told := fmt.Sprintf("%+v %+v", events.Events(), e); tc.password != "" && strings.Contains(told, tc.password) {
					t.Errorf("the password is in %s", told)
				}
			}
		})
	}
}

func TestRealSudoFiles(t *testing.T) {
	in := startSudoHost(t, testUser+" ALL=(ALL) ALL")
	in.SSH.SudoPassword = secretOf(t, "${SUDO}")
	d, _ := newDialer(t, Options{Secret: func(inventory.Secret) (string, error) { return testPassword, nil }})
	h := dialWith(t, d, in)
	name := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(name, []byte("content"), 0o600))
	if got, err := h.ReadFile(t.Context(), name, upTo(100)); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
}
