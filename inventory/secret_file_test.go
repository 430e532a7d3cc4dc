package inventory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file of a secret is the user's own and nobody else may read it, or it is refused: where the inventory names it, and
// again when it is read.
func TestSecretFilesAreTheUsersOwn(t *testing.T) {
	const text = "ssh:\n  sudoPassword: file:secret\nhosts: [{address: 10.0.0.10, role: control-plane}]\n"
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o644: false} {
		dir := t.TempDir()
		path, inventory := filepath.Join(dir, "secret"), filepath.Join(dir, "inventory.yaml")
		must(t, errors.Join(os.WriteFile(path, []byte("hunter2\n"), 0o600), os.Chmod(path, mode)))
		_, err := Decode(inventory, []byte(text), testOptions())
		data, readErr := ReadSecret(path)
		if fine {
			if err != nil || readErr != nil || string(data) != "hunter2\n" {
				t.Errorf("%o: %v, %q, %v", mode, err, data, readErr)
			}
			continue
		}
		want := fmt.Sprintf("inventory.yaml:2:17: ssh.sudoPassword: %s can be read by others, its mode is %04o: `chmod 600 %s`", path, mode, path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%o: %v, want %s", mode, err, want)
		}
		if readErr == nil || len(data) > 0 {
			t.Errorf("%o: was read", mode)
		}
	}
}

// somebody is a user who is neither root nor the one of these tests.
const somebody = 54321

func TestSecretFilesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(path, []byte("hunter2"), 0o600))
	reader := somebody // who meets a file of the one of these tests
	if os.Geteuid() == 0 {
		reader = 0 // who meets a file of somebody
		must(t, os.Chown(path, somebody, -1))
	}
	info, err := os.Stat(path)
	must(t, err)
	if err := private(path, info, reader); err == nil || !strings.Contains(err.Error(), "belongs to the user with the ID") {
		t.Error(err)
	}
}
