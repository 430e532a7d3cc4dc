package scripts

import (
	"strings"
	"testing"
)

// Programs that the owner has apt run: kgpu does without those that only follow an update of the lists, goes on where one failed after
// apt's work, and names others with their files.
func TestHooksOfTheOwners(t *testing.T) {
	t.Parallel()
	const file = "/etc/apt/apt.conf.d/50theirs"
	for name, c := range map[string]struct{ hook, file, script, failure string }{
		"after new lists": {`APT::Update::Post-Invoke-Success { "if test -w /var; then /usr/lib/cnf-update-db > /dev/null; fi"; };
APT::Update::Post-Invoke { "false"; }; APT::Update::Post-Invoke-Stats { "touch /ran"; };`, file, "apt_get update; apt_install one; [[ ! -e /ran ]]", ""},
		"after the work": {`DPkg::Post-Invoke { "true"; "exit 4"; }; APT::Install::Post-Invoke-Success { "exit 3"; };`, file, "apt_install one", ""},
		"before new lists": {`APT::Update::Pre-Invoke { "echo hello; /no/such/program \"$1\""; };`, file, "apt_update; apt_install one",
			"apt-get update: Problem executing scripts APT::Update::Pre-Invoke 'echo hello; /no/such/program \\$1\\': sh: 1: /no/such/program: not found (" + file + ")"},
		"before packages": {`DPkg::Pre-Install-Pkgs { "/usr/sbin/apt-listbugs apt"; };`, file, "apt_install one",
			"apt-get install: Failure running script /usr/sbin/apt-listbugs apt: /bin/sh: 1: /usr/sbin/apt-listbugs: not found (" + file + ")"},
		"asked before":  {`AptCli::Hooks::Install { "echo 'ValueError: no' >&2; exit 1"; };`, file, "apt_install one", "Failure running hook echo 'ValueError: no' >&2; exit 1: ValueError: no ("},
		"before dpkg":   {`DPkg::Pre-Invoke { "mount -o remount,rw /no-such-place"; };`, file, "apt_install one", "DPkg::Pre-Invoke 'mount -o remount,rw /no-such-place'"},
		"dpkg's own":    {"post-invoke=\"exit 3\"\n", "/etc/dpkg/dpkg.cfg.d/theirs", "apt_install one", "error executing hook 'exit 3', exit code 768 (/etc/dpkg/dpkg.cfg.d/theirs)"},
		"and a package": {`DPkg::Post-Invoke { "exit 4"; };`, file, "apt_install broken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "one", version: "1"}, deb{name: "broken", version: "1", postinst: "exit 7"})
			s.ok(s.script("apt-get update"))
			s.write(c.file[1:], c.hook)
			r := s.script(c.script)
			switch {
			case name == "and a package":
				if r.status == 0 || s.status("broken") == "install installed 1" {
					t.Errorf("status %d, output:\n%s", r.status, r.output)
				}
			case c.failure == "":
				s.ok(r)
				s.packageIs("one", "install installed 1")
			default:
				s.fails(r, 1, "HOST_APT_HOOK")
				if !strings.Contains(r.failure, c.failure) || !strings.Contains(r.failure, "("+c.file+")") {
					t.Errorf("failure %q, want %q; output:\n%s", r.failure, c.failure, r.output)
				}
			}
		})
	}
}

// Sources on the host, or in it, that are not there: the reason has apt's words, the file and the line.
func TestSourcesOfTheOwners(t *testing.T) {
	t.Parallel()
	const disc = "[Debian GNU/Linux 12.5.0 _Bookworm_ - Official amd64 DVD Binary-1 with firmware]"
	const list = "/etc/apt/sources.list.d/theirs.list"
	for name, c := range map[string]struct{ sources, script, reason, want string }{
		"a disc": {"# from the installer\ndeb [trusted=yes] cdrom:" + disc + "/ bookworm main\n", "apt_install two", "HOST_APT_SOURCE",
			"cdrom://" + disc + "/pool/two_1_all.deb  Please use apt-cdrom to make this CD-ROM recognized by APT. apt-get update cannot be used to add new CD-ROMs (" + list + ":2)"},
		"a folder":         {"deb [trusted=yes] file:/theirs ./\n", "apt_install two", "HOST_APT_SOURCE", "File not found - /theirs/./two_1_all.deb (2: No such file or directory) (" + list + ":1)"},
		"a folder to copy": {"deb [trusted=yes] copy:/theirs ./\n", "apt_install two", "HOST_APT_SOURCE", "(" + list + ":1)"},
		"none has it: a disc": {"deb cdrom:" + disc + "/ bookworm main\n", "apt_install three", "PACKAGE_MISSING",
			"Unable to locate package three; The repository 'cdrom://" + disc + " bookworm Release' does not have a Release file. (" + list + ":1)"},
		"none has it: ftp":    {"deb ftp://ada:hidden@127.0.0.1/x stable main\n", "apt_install three", "PACKAGE_MISSING", "; The method 'ftp' is unsupported and disabled by default."},
		"none has it: no way": {"\n\ndeb https+vpn://127.0.0.1/x stable main\n", "apt_install three", "PACKAGE_MISSING", "; The method driver /usr/lib/apt/methods/https+vpn could not be found."},
		"none has it: another release": {"deb file:/ppa resolute main\n", "refuse_missing 'apt does not offer three' three", "PACKAGE_MISSING",
			"apt does not offer three; The repository 'file:/ppa resolute Release' does not have a Release file. (" + list + ":1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "one", version: "1"})
			s.write("etc/apt/apt.conf.d/99quick", "Acquire::Retries::Delay \"false\";\n")
			s.repositoryOf("theirs", deb{name: "two", version: "1"})
			s.write(list[1:], c.sources)
			// The list is there, as of an earlier time, and the package is not.
			s.ok(s.script(`apt-get -qq update || true
apt-get indextargets --no-release-info --format '$(FILENAME)' 'Identifier: Packages' | { grep Debian || true; } | while IFS= read -r file; do
  sed 's#^Filename: ./#Filename: pool/#' /theirs/Packages >"$file"
done
rm /theirs/*.deb`))
			r := s.script("apt_update\n" + c.script)
			if !strings.HasPrefix(c.script, "refuse") {
				r = s.script(c.script)
			}
			s.fails(r, 1, c.reason)
			if !strings.Contains(r.failure, c.want) || strings.Contains(r.failure+r.output, "hidden") {
				t.Errorf("failure %q, want %q; output:\n%s", r.failure, c.want, r.output)
			}
		})
	}
}
