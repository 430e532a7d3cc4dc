package access

import (
	"errors"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

func TestUsers(t *testing.T) {
	h, o := newAPIHost(t)
	h.program(t, "kubectl", `printf 'joe\tjoe\tedit\tDec  1 10:00:00 2026 GMT\nann\tlab\tview\t\n'`)
	got, err := Users(t.Context(), o)
	if err != nil || len(got) != 2 || got[0].Name != "joe" || got[0].Until.Format(time.DateOnly) != "2026-12-01" || got[1].Role != "view" || !got[1].Until.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	h.program(t, "kubectl", `echo what; exit 0`)
	if _, err := Users(t.Context(), o); !errors.Is(err, &reason.Error{ID: reason.FactsFailed}) {
		t.Error(err)
	}
}
