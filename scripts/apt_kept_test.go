package scripts

import (
	"strings"
	"testing"
)

// kept is a host whose owner removed packages and kept their configuration: one file as it came, one edited, one deleted.
func kept(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	debs := func(version string) []deb {
		return []deb{{name: "plain", version: version}, {name: "edited", version: version, depends: "plain"}, {name: "deleted", version: version}, {name: "new", version: version, depends: "plain, edited, deleted"}}
	}
	s.repository(debs("1")...)
	s.ok(s.script("apt-get update; apt-get install -y plain edited deleted; echo theirs >/opt/edited/conf; chmod 600 /opt/edited/conf; rm /opt/deleted/conf; apt-get remove -y plain edited deleted"))
	s.repository(debs("2")...)
	s.ok(s.script("apt-get update"))
	return s
}

func (s *sandbox) keptAgain() {
	s.t.Helper()
	for _, name := range []string{"plain", "edited"} {
		if got := s.status(name); !strings.HasPrefix(got, "deinstall config-files") {
			s.t.Errorf("%s: %q", name, got)
		}
	}
	if !s.purged("new") {
		s.t.Errorf("new: %q", s.status("new"))
	}
}

// They are removed again, and not purged.
func TestConfigurationThatWasKept(t *testing.T) {
	t.Parallel()
	s := kept(t)
	before := s.snapshot()
	s.ok(s.script("apt_install new"))
	if got := s.read("opt/plain/conf"); s.status("edited") != "install installed 2" || got != "2" {
		t.Fatalf("edited %q, the configuration of plain %q", s.status("edited"), got)
	}
	// An undo that is killed in between goes on where it was.
	if r := s.script("undo_kept() { kill -KILL $$; }\nundo_all"); r.status == 0 {
		t.Fatalf("was not killed:\n%s", r.output)
	}
	s.keptAgain()
	lacks(t, s.ok(s.script("undo_all")).output, "not undone")
	s.keptAgain()
	s.same(before)
}

func TestConfigurationThatWasKeptAndEditedSince(t *testing.T) {
	t.Parallel()
	s := kept(t)
	s.ok(s.script("apt_install new plain"))
	s.write("opt/plain/conf", "edited since")
	r := s.ok(s.script("undo_all"))
	s.keptAgain()
	if s.read("opt/plain/conf") != "edited since" || !strings.Contains(r.output, "not undone: /opt/plain/conf was edited since kgpu installed plain") {
		t.Errorf("the file is %q:\n%s", s.read("opt/plain/conf"), r.output)
	}
}
