package facts

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func statusOf(lines ...string) []byte {
	return []byte("kgpu-status=1\n" + strings.Join(append(lines, "end=1", ""), "\n"))
}

// TestUnescaped: the escapes of js, of Go's older and newer templates, are reversed.
func TestUnescaped(t *testing.T) {
	for escaped, want := range map[string]string{
		"plain": "plain", `a\u003Db\u0009c`: "a=b\tc", `a\x3Db`: "a=b", `it\'s \"x\" \\n`: `it's "x" \n`, `\`: `\`, `\q"`: `\q"`, `ü\u00fc`: "üü",
	} {
		if got := unescaped(escaped); got != want {
			t.Errorf("%q: %q, want %q", escaped, got, want)
		}
	}
}

// TestRequestsOfAPod: a pod requests the sum of its containers, or the largest of its init containers.
func TestRequestsOfAPod(t *testing.T) {
	for _, c := range []struct{ together, before, want string }{
		{"g=1 g=2 ", "", "map[g:3]"}, {"g=1 ", "g=2 g=4 ", "map[g:4]"}, {"", "g=1 ", "map[g:1]"}, {"g=2k ", "", "map[g:2000]"},
		{"", "", "map[]"}, {"g=-1 h=x i=99999999999999999999 j=2000000 ", "", "map[]"},
	} {
		s, err := ParseStatus(statusOf("control-plane=1", "cluster=pod\tn\tp\tw1\tRunning\tTrue\t"+c.together+"\t"+c.before))
		must(t, err)
		if got := fmt.Sprint(s.API.Pods[0].Requests); got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.together, c.before, got, c.want)
		}
	}
}

func TestInvalidStatus(t *testing.T) {
	for name, c := range map[string]struct {
		answer    []byte
		truncated bool
	}{
		"nothing":                   {nil, true},
		"another answer":            {[]byte("kgpu-facts=1\nend=1\n"), true},
		"without an end":            {[]byte("kgpu-status=1\ncontrol-plane=1\n"), true},
		"a node without a name":     {statusOf("control-plane=1", "cluster=node\t\tTrue"), false},
		"a pod without a name":      {statusOf("control-plane=1", "cluster=pod\tkube-system"), false},
		"a worker that knows nodes": {statusOf("cluster=node\tw1\tTrue"), false},
	} {
		if _, err := ParseStatus(c.answer); err == nil || errors.Is(err, ErrTruncated) != c.truncated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShortStatusLines: the fields of a short line are used, and an invalid time is zero.
func TestShortStatusLines(t *testing.T) {
	s, err := ParseStatus(statusOf("control-plane=1", "api=1", "cluster=node\tw1\t\tTrue"+strings.Repeat("\t", 12)+"yesterday", "cluster=node\tw2\t\tFalse"+strings.Repeat("\t", 12)+"2026-11-21T11:40:00Z", "cluster=lease\tx"))
	must(t, err)
	if n := s.API.Nodes; len(n) != 2 || !n[0].Ready || n[1].Ready || !n[0].Since.IsZero() || !n[1].Since.Equal(time.Date(2026, 11, 21, 11, 40, 0, 0, time.UTC)) {
		t.Errorf("nodes: %+v", n)
	}
}

// FuzzParseStatus: what a host says never makes the parser panic.
func FuzzParseStatus(f *testing.F) {
	f.Add(statusOf("control-plane=1", "api=1", `cluster=node	w1	u	True		v1	docker://1	10.0.0.1 	true	a=b 	k=:NoSchedule 	nvidia.com/gpu=1k 	nvidia.com/gpu=1 	x	Ready=True 	2026-11-21T11:40:00Z	r	m\u003D	w	k	o`))
	f.Add(statusOf("control-plane=1", "api-error=x", "cluster=pod\tn\tp\tw1\tRunning\tTrue\tg=1 \tg=2 \tX "))
	f.Add(statusOf("control-plane=1", "api=1", `cluster=waits	n	p		2026-11-21T11:40:00Z	2026-11-21T11:40:00Z	why	c CrashLoopBackOff back-off 99999999h restarting`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := ParseStatus(data); (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
	})
}
