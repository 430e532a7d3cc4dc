package inventory

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseTargets(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.10":                   "|10.0.0.10|0",
		"gpu1.example.com":            "|gpu1.example.com|0",
		"ubuntu@10.0.0.10:2222":       "ubuntu|10.0.0.10|2222",
		"10.0.0.[11-12]":              "|10.0.0.11|0 |10.0.0.12|0",
		"ops@gpu[1,3].lab:22":         "ops|gpu1.lab|22 ops|gpu3.lab|22",
		"2001:db8::1":                 "|2001:db8::1|0",
		"me@[2001:db8::1]":            "me|2001:db8::1|0",
		"me@[2001:db8::1]:2222":       "me|2001:db8::1|2222",
		"me@corp.example.com@host":    "me@corp.example.com|host|0",
		"":                            "error has no address",
		"ubuntu@":                     "error has no address",
		"10.0.0.1-5":                  "error 10.0.0.[1-5]",
		"10.0.0.1-10.0.0.5":           "error 10.0.0.[1-5]",
		"10.0.0.1,10.0.0.2":           "error no commas",
		"ssh://ubuntu@10.0.0.1":       "error without ssh://",
		"ssh://joe:hunter22@10.0.0.1": "error without ssh://",
		"host:":                       "error the port must be a number",
		"host:0":                      "error the port must be a number",
		"host:65536":                  "error the port must be a number",
		"host:ssh":                    "error the port must be a number",
		"[2001:db8::1]2222":           "error the port must be a number",
		"@host":                       "error is not the name of a user",
		"-oProxyCommand=x@host":       "error is not the name of a user",
		"joe:hunter22@host":           "error without a password",
		"under_score":                 "error is neither",
		"10.0.0.[14-11]":              "error runs backwards",
		"10.0.0.[1-3].[1-3]":          "error two ranges",
		"10.0.0.300":                  "error is not an IP address",
		"0.0.0.0":                     "error is not the address of a machine",
		"-oProxyCommand=reboot":       "error is neither",
		"10.0.0.0/24":                 "error 10.0.0.[1-5]",
		"host; reboot":                "error is neither",
		"fe80::1%eth0":                "error has a zone",
		"10.0.0.[1-100000]":           "error names more than",
		"a@" + strings.Repeat("b", 9): "a|bbbbbbbbb|0",
	} {
		list, err := ParseTargets(text)
		var got []string
		for _, x := range list {
			got = append(got, fmt.Sprintf("%s|%s|%d", x.User, x.Address, x.Port))
		}
		if wrong, ok := strings.CutPrefix(want, "error "); ok {
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "hunter22") {
				t.Errorf("%q: %q, %v, want %s", text, got, err, want)
			}
		} else if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %s", text, got, err, want)
		}
	}
}

func TestTargetIsAt(t *testing.T) {
	for address, want := range map[string]bool{"GPU1.lab.": true, "gpu1.lab": true, "gpu2.lab": false} {
		if got := (Target{Address: "gpu1.LAB"}).IsAt(Host{Name: "gpu2.lab", Address: address}); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestDistinctTargets(t *testing.T) {
	same := []Target{{Address: "10.0.0.1"}, {Address: "GPU1.lab"}, {Address: "gpu1.lab."}, {Address: "::ffff:10.0.0.1"}}
	if got, err := DistinctTargets(same); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := DistinctTargets([]Target{{Address: "10.0.0.1"}, {Address: "10.0.0.1", User: "me"}}); err == nil {
		t.Errorf("%v", got)
	}
	if got, err := DistinctTargets(make([]Target, 1)); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	var many []Target
	for i := range maxHosts + 1 {
		many = append(many, Target{Address: fmt.Sprint("h", i)})
	}
	if _, err := DistinctTargets(many); err == nil {
		t.Error("more hosts than an inventory takes are taken")
	}
}
