package facts

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: what a host says never makes the parser panic; an answer that is cut anywhere is none.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(answerOf("pci=0 0302 20b0 -", "gpu=GPU-1, A, 00000000:17:00.0, [N/A]", "mig=  MIG 1g.5gb Device 0: (UUID: MIG-1)"))
	f.Add(answerOf("file-system=1 2 0 - / /", "listen=LISTEN 0 1 [::%lo]:22 x", "swap-unit=dev-\\x2.swap static", "address=1: a inet 1/1"))
	f.Add(answerOf("kubelet-server=x", "kubelet-ca=LS0t", "cluster=node\ta\tb\tc\td\t\t\t\t\t\t\t<no value>", "control-plane=1", "run=x", "run-since-ms=-9223372036854775808"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Parse(data)
		if (h == nil) == (err == nil) {
			t.Fatalf("%v, %v", h, err)
		}
		if err == nil && len(data) > 1 {
			if _, err := Parse(data[:len(data)-1]); err == nil {
				t.Error("an answer without its last byte is taken")
			}
		}
	})
}

func FuzzParseReach(f *testing.F) {
	f.Add([]byte("kgpu-reach=1\nreach=10.0.0.1 6443 open\nreach=x 443 silent\nend=1\n"))
	f.Add([]byte("kgpu-reach=1\nreach=a 65536 open\nend=1\n"))
	f.Add([]byte("kgpu-reach=1\noffers=1.36 yes 1.36.5 1.36.3\nend=1\n"))
	f.Add([]byte("kgpu-reach=1\noffers=1.36 no not signed\nend=1\n"))
	f.Add([]byte("kgpu-reach=1\ncontainerd=1.7.24~ds1-6 it has none\nend=1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		states, err := ParseReach(data)
		if (states == nil) == (err == nil) {
			t.Errorf("%v, %v", states, err)
		}
		if c, err := ParseContainerd(data); err == nil && strings.ContainsAny(c.Version, " \n\x1b") {
			t.Errorf("%q is taken for a version", c.Version)
		}
		if offer, err := ParseAvailableVersions(data); err == nil && offer != nil {
			for _, v := range offer.Versions {
				if v.MinorString() != offer.Minor {
					t.Errorf("%s is taken for a patch of %s", v, offer.Minor)
				}
			}
		}
	})
}

// TestHugeConfigurationsAreRefused: a configuration file that is too deep or too long would exhaust the stack or the
// memory.
func TestHugeConfigurationsAreRefused(t *testing.T) {
	plain := answerOf("containerd-toml="+base64.StdEncoding.EncodeToString([]byte("version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x\"\n")),
		"daemon-json="+base64.StdEncoding.EncodeToString([]byte(`{"log-opts": {"max-size": "1m"}}`)))
	if _, err := Parse(plain); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"tables":      "[plugins." + strings.Repeat("a.", 1<<17) + "b]\n",
		"dotted keys": strings.Repeat("a.", 1<<17) + "b = 1\n",
		"inline":      "x = {" + strings.Repeat("a.", 1<<17) + "b = 1}\n",
		"json":        strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
		"long":        strings.Repeat("# nothing\n", 1<<17),
	} {
		for _, key := range []string{"daemon-json", "containerd-toml", "containerd-dump"} {
			if _, err := Parse(answerOf(key + "=" + base64.StdEncoding.EncodeToString([]byte(file)))); err == nil || len(err.Error()) > 200 {
				t.Errorf("%s as %s: %v", name, key, err)
			}
		}
	}
}
