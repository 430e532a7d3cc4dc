package facts

import (
	"testing"
	"time"
)

func TestParseLockHolder(t *testing.T) {
	if h := parse(t); h.LockHolder != nil {
		t.Errorf("nobody holds the host, and it says %+v", h.LockHolder)
	}
	h := parse(t, "operator=held", "operator=who=ada@laptop", "operator=from=10.0.0.7", "operator=since=1795181171",
		"operator=command=up a=b.yaml\x1b[31m", "operator=run=20261120-130501-a1b2c3", "operator=mood=good")
	if want := (LockHolder{Who: "ada@laptop", From: "10.0.0.7", Since: time.Unix(1795181171, 0), Command: "up a=b.yaml", Run: "20261120-130501-a1b2c3"}); *h.LockHolder != want {
		t.Errorf("%+v", *h.LockHolder)
	}
	if h := parse(t, "operator=held"); h.LockHolder == nil || *h.LockHolder != (LockHolder{}) {
		t.Errorf("one that has only just begun: %+v", h.LockHolder)
	}
}

func TestDescribeLockHolder(t *testing.T) {
	since := time.Unix(1795180371, 0)
	o := LockHolder{Who: "ada@laptop", From: "10.0.0.7", Since: since, Command: "up inventory.yaml"}
	for now, want := range map[time.Time]string{
		since.Add(130 * time.Second): "ada@laptop from 10.0.0.7 since 2026-11-20 13:12:51 UTC (2m10s ago), doing `kgpu up inventory.yaml`",
		since.Add(-time.Hour):        "ada@laptop from 10.0.0.7 since 2026-11-20 13:12:51 UTC (0s ago), doing `kgpu up inventory.yaml`",
	} {
		if got := o.Describe(now); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (&LockHolder{}).Describe(since); got != "somebody" {
		t.Error(got)
	}
}
