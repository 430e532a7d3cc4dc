package bootstrap

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/session"
)

// carriesOn names the command that carries on with a run that is watched, of which these steps were seen: the one that its
// operator told, where that says enough, or the one that has such steps.
func carriesOn(s *session.Session, steps []string) string {
	if _, f := s.Holder(); f != nil {
		for _, command := range []string{"up", "add-worker", "remove-worker", "reset", "smoke"} {
			if word, _, _ := strings.Cut(f.Operator.Command, " "); word == command {
				return "`kgpu " + command + "`"
			}
		}
	}
	for _, f := range s.Facts {
		if f.Run != nil {
			steps = append(steps, f.Run.Step)
		}
	}
	for _, c := range []struct{ begin, command string }{
		{"dashboard/deploy", "`kgpu dashboard`"}, {"dashboard/remove", "`kgpu dashboard --remove`"},
		{"user/create", "`kgpu user create`"}, {"user/delete", "`kgpu user delete`"},
		{"doctor/watch", "`kgpu doctor --install-watch`"}, {"doctor/", "`kgpu doctor --fix`"},
		{"host/reset", "the `kgpu reset` or `kgpu remove-worker` that it was"},
	} {
		if slices.ContainsFunc(steps, func(id string) bool { return strings.HasPrefix(id, c.begin) }) {
			return c.command
		}
	}
	// Nodes leave with several commands; the steps of up are all others.
	if len(steps) > 0 && !slices.ContainsFunc(steps, func(id string) bool { return !strings.HasPrefix(id, "node/") }) {
		return "the command that began it"
	}
	return "`kgpu up`"
}
