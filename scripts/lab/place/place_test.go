package place

import "testing"

func TestPlacesFollowNameAndEnvironment(t *testing.T) {
	t.Setenv("KGPU_LAB_CACHE", "/c")
	t.Setenv("KGPU_LAB_STATE", "/s")
	t.Setenv("KGPU_LAB_EXTRA", "")
	t.Setenv("KGPU_LAB_NAME", "from-env")
	for name, want := range map[string]Place{
		"":      {Name: "from-env", Cache: "/c", State: "/s/from-env", Extra: "/c/extra"},
		"other": {Name: "other", Cache: "/c", State: "/s/other", Extra: "/c/extra"},
	} {
		if got, err := New(name); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", name, got, err)
		}
	}
}

func TestNamesThatWouldLeaveTheFolderAreRefused(t *testing.T) {
	for _, name := range []string{"..", "a/b", "-x", "Lab", "a b", "seventeen-letters"} {
		if p, err := New(name); err == nil {
			t.Errorf("%q became %s", name, p.State)
		}
	}
}
