package facts

import (
	"strings"
	"testing"
	"time"
)

// TestKeyExpiry: a key signs until its primary key or its last signing subkey expires, whichever is earlier.
func TestKeyExpiry(t *testing.T) {
	const path = "/etc/apt/keyrings/kgpu-kubernetes.gpg"
	day := func(s string) time.Time {
		at, err := time.Parse(time.DateOnly, s)
		must(t, err)
		return at
	}
	for name, c := range map[string]struct {
		records []string
		want    time.Time
	}{
		"never":                   {[]string{"pub:-:255:22:AB:1735689600:::-:::scSC:::::ed25519:::0:"}, time.Time{}},
		"the primary signs":       {[]string{"pub:e:2048:1:AB:1661519093:1798502400::-:::sc::::::23::0:"}, day("2026-12-29")},
		"a part signs":            {[]string{"pub:-:255:22:AB:1735689600:::-:::cSC:::::ed25519:::0:", "sub:-:255:22:CD:1735776000:1798502400:::::s:::::ed25519::"}, day("2026-12-29")},
		"a newer part signs":      {[]string{"pub:-:255:22:AB:1735689600:::-:::cSC:::::ed25519:::0:", "sub:e:255:22:CD:1735776000:1748736000:::::s:::::ed25519::", "sub:-:255:22:EF:1735776000:1798502400:::::s:::::ed25519::"}, day("2026-12-29")},
		"and one without an end":  {[]string{"pub:-:255:22:AB:1735689600:::-:::cSC:::::ed25519:::0:", "sub:e:255:22:CD:1735776000:1748736000:::::s:::::ed25519::", "sub:-:255:22:EF:1735776000::::::s:::::ed25519::"}, time.Time{}},
		"the primary ends before": {[]string{"pub:e:255:22:AB:1735689600:1798502400::-:::cSC:::::ed25519:::0:", "sub:-:255:22:CD:1735776000:::::::s:::::ed25519::"}, day("2026-12-29")},
		"a part encrypts":         {[]string{"pub:-:255:22:AB:1735689600:::-:::scESC:::::ed25519:::0:", "sub:e:255:18:CD:1735776000:1748736000:::::e:::::cv25519::"}, time.Time{}},
	} {
		output := "kgpu-facts=1\nnow=1795582442.5\ncpus=1\nmemory-kib=1\nledger=1\nkeyring=1795582442 " + path + "\n"
		for _, r := range append([]string{"tru:t:0:0:0:0:0:0"}, c.records...) {
			output += "keyring-key=" + path + "=" + r + "\nkeyring-key=" + path + "=fpr:::::::::" + strings.Repeat(r[:1], 40) + ":\n"
		}
		h, err := Parse([]byte(output + "keyring-key=" + path + "=uid:-::::1735689600::DDC1::x <x@y>::::::::::0:\nend=1\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		k := h.Keyrings[path]
		if len(k.Keys) != 1 || !k.Keys[0].Until.Equal(c.want) || k.Keys[0].Fingerprint != strings.Repeat("p", 40) || k.Accepted.Unix() != 1795582442 {
			t.Errorf("%s: %+v, want until %v", name, k, c.want)
		}
	}
}
