package graph

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

var kinds = Kinds{
	{ID: "kube/packages"}, {ID: "node/drain", PerNode: true, Title: "drain a node", Script: "node-drain", Retry: Transient, Timeout: time.Minute},
	{ID: "os/swap"}, {ID: "os/time"}, {ID: "addon/one", Former: "one/deploy"}, {ID: "addon/two", Former: "one/remove"},
}

func TestPatternsWithoutAStep(t *testing.T) {
	for pattern, known := range map[string]bool{
		"kube/packages": true, "os/*": true, "node/drain/w1": true, "node/drain": true, "*/*": true,
		"os": true, "kube/package": false, "drain": false, "[": false, "": false,
	} {
		err := kinds.CheckPatterns([]string{"os/time", pattern})
		var usage *reason.UsageError
		if known != (err == nil) || !known && (!errors.As(err, &usage) || !strings.HasPrefix(usage.Message, `no step "`+pattern+`".`)) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// TestHintForTheWrongFamily: a step's name in another family, as older versions of kgpu had some, gets the right ID as
// a hint.
func TestHintForTheWrongFamily(t *testing.T) {
	for pattern, want := range map[string]string{
		"driver/drain": "node/drain", "driver/drain/w1": "node/drain", "os/tine": "os/time", "swap/time": "os/time", "kub/packages": "kube/packages",
	} {
		if err := kinds.CheckPatterns([]string{pattern}); err == nil || err.Error() != `no step "`+pattern+`". Did you mean "`+want+`"?` {
			t.Errorf("%v", err)
		}
	}
}

// A step that had another ID in former versions of kgpu is still known by it, and who names it so is told the new one.
func TestFormer(t *testing.T) {
	for pattern, want := range map[string]string{"one/deploy": `"addon/one"`, "one/*": `"addon/one" or "addon/two"`, "one": `"addon/one" or "addon/two"`} {
		if err := kinds.CheckPatterns([]string{pattern}); err == nil || err.Error() != `no step "`+pattern+`". Did you mean `+want+`?` {
			t.Errorf("%v", err)
		}
	}
	if kind := kinds.Of("one/remove"); kind == nil || kind.ID != "addon/two" {
		t.Errorf("%+v", kind)
	}
	if kind := kinds.Of(""); kind != nil {
		t.Errorf("%+v", kind)
	}
}

// TestStepsTakeFromTheirKind: a step takes from its kind what it does not set itself, and one without a kind is
// refused.
func TestStepsTakeFromTheirKind(t *testing.T) {
	s := &Step{Ref: Ref{"cp1", "node/drain/w1"}, Title: "drain node w1", ByHand: []*Step{{Ref: Ref{"cp1", "node/drain/w1"}, Script: "other"}}}
	kinds.Complete(s)
	if s.Title != "drain node w1" || s.Script != "node-drain" || s.Retry != Transient || s.Timeout != time.Minute {
		t.Errorf("%+v", s)
	}
	if by := s.ByHand[0]; by.Title != "drain a node" || by.Script != "other" {
		t.Errorf("by hand: %+v", by)
	}
	for _, id := range []string{"os/swap/w1", "node/drain/w1/x", "node"} {
		s := &Step{Ref: Ref{"cp1", id}}
		kinds.Complete(s)
		if (&Graph{Steps: []*Step{s}}).Validate() == nil || kinds.Of(id) != nil {
			t.Errorf("%s has a kind", id)
		}
	}
}
