package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func seconds(list ...float64) []time.Duration {
	var out []time.Duration
	for _, s := range list {
		out = append(out, time.Duration(s*float64(time.Second)))
	}
	return out
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		times []time.Duration
		want  time.Duration
	}{
		{seconds(3), 3 * time.Second},
		{seconds(1, 2), 1500 * time.Millisecond},
		{seconds(1, 2, 9), 2 * time.Second},
		{seconds(1, 2, 4, 9), 3 * time.Second},
	} {
		if got := median(c.times); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.times, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	even := result{name: "even", kgpu: seconds(1, 1.5, 9), bare: seconds(0.5, 1, 2)}
	slow := result{name: "slow", kgpu: seconds(1.6), bare: seconds(1)}
	if err := judge([]result{even}); err != nil {
		t.Error(err)
	}
	late := result{name: "late", kgpu: seconds(11), bare: seconds(11), most: 10 * time.Second}
	if err := judge([]result{even, late}); !errors.Is(err, errLate) || errors.Is(err, errSlow) {
		t.Errorf("judgement %v", err)
	}
	err := judge([]result{even, slow})
	if !errors.Is(err, errSlow) || !strings.Contains(err.Error(), "slow: ") || strings.Contains(err.Error(), "even") {
		t.Errorf("judgement %v", err)
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := printTable(&out, []result{{name: "1 host", kgpu: seconds(1, 1.5, 9), bare: seconds(0.5, 1, 2)}}); err != nil {
		t.Fatal(err)
	}
	const want = `
median of 7 (shortest–longest)  kgpu                bare program        ratio
1 host                          1.50 s (1.00–9.00)  1.00 s (0.50–2.00)  1.50
`
	if out.String() != want {
		t.Errorf("table\n%s\nwant\n%s", out.String(), want)
	}
}
