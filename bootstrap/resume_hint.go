package bootstrap

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/session"
)

// resumeHint names the command that carries on with a run that is watched, of which these steps were seen: the one that its
// operator told, where that says enough, or the one that has such steps.
func resumeHint(s *session.Session, steps []string) string {
	if _, f := s.Holder(); f != nil {
		for _, command := range []string{"up", "add-worker", "remove-worker", "reset", "smoke"} {
			if word, _, _ := strings.Cut(f.LockHolder.Command, " "); word == command {
				return "`kgpu " + command + "`"
			}
		}
	}
	for _, f := range s.Facts {
		if f.Run != nil {
			steps = append(steps, f.Run.Step)
		}
	}
	for _, id := range steps {
		if kind := plan.Kinds.Of(id); kind != nil && kind.Resumes != "" {
			return kind.Resumes
		}
	}
	// Nodes leave with several commands; the steps of up are all others.
	if len(steps) > 0 && !slices.ContainsFunc(steps, func(id string) bool { return !strings.HasPrefix(id, "node/") }) {
		return "the command that began it"
	}
	return "`kgpu up`"
}
