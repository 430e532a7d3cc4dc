package access

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// DeleteUser takes all rights from a user that CreateUser gave, that somebody gave to them alone, or that they gave themselves in
// a namespace of their own, and asks the API server what they may then. It returns, for people, what is left. Where there is
// no such user, the error is a *reason.UsageError; where they still have rights, the reason is UserRightsLeft.
func DeleteUser(ctx context.Context, o session.Options, name string) (string, error) {
	if err := (plan.User{Name: name, Namespace: "x", Role: "view"}).Valid(); err != nil {
		return "", &reason.UsageError{Message: err.Error()}
	}
	var out string
	err := session.OnPlanes(ctx, o, func(ctx context.Context, s *session.Session) error {
		graph, err := plan.DeleteUser(s.Inventory, s.Facts, name)
		if err != nil {
			return err
		}
		done, err := s.Execute(ctx, graph)
		if err != nil {
			return err
		}
		c, said := To(s, ""), done.Outputs[graph.Steps[0].Ref]
		if strings.TrimSpace(string(said[plan.OutputFound])) == "" {
			return noSuchUser(ctx, c, name)
		}
		f := newFarewell(name, said)
		if len(f.accounts) > 0 {
			c.Warn("%s may have tokens of ServiceAccounts that keep their rights, as the namespace is not theirs alone: %s", name, some(f.accounts))
		}
		if len(f.may)+len(f.left) > 0 {
			return &reason.Error{ID: reason.UserRightsLeft, Host: s.AdminPlane().ID(), Doing: "taking all rights from " + name, Detail: f.rights()}
		}
		out = f.String()
		return nil
	})
	return out, err
}

// noSuchUser is the error of a name that is no user's, and says whose may be meant.
func noSuchUser(ctx context.Context, c *Cluster, name string) error {
	hint := ""
	if users, err := c.Users(ctx); err == nil {
		var names []string
		for _, u := range users {
			names = append(names, u.Name)
		}
		hint = nearest.Hint(name, names)
	}
	return reason.Usagef("kgpu has made no user %q in this cluster.%s (kgpu user list)", name, hint)
}

// farewell is what the control plane tells of a user who was deleted.
type farewell struct {
	name       string
	namespaces []string  // in which they had rights
	until      time.Time // end of the last of their certificates; zero: not known
	may        []string  // what they still may: namespace, tab, rule
	left       []string  // bindings that lead them there and others, too, as arguments of kubectl
	accounts   []string  // NAMESPACE/NAME of ServiceAccounts with rights, in namespaces that are not theirs alone
	pods       []string  // NAMESPACE/NAME of those that run in namespaces of theirs alone
}

// shownOfUser is how many things of a kind a message names.
const shownOfUser = 5

func newFarewell(name string, said map[string][]byte) *farewell {
	lines := func(output string) (out []string) {
		for line := range strings.Lines(string(said[output])) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, printable.Line(line))
			}
		}
		return out
	}
	f := &farewell{
		name: name, namespaces: lines(plan.OutputNamespaces), may: lines(plan.OutputMay), left: lines(plan.OutputBindings),
		accounts: lines(plan.OutputAccounts), pods: lines(plan.OutputPods),
	}
	for _, line := range lines(plan.OutputEnd) {
		if end := certificateEnd(line); end.After(f.until) {
			f.until = end
		}
	}
	return f
}

// rights are those that are left.
func (f *farewell) rights() string {
	text := "kgpu took what it found, and the user still has rights"
	if len(f.left) > 0 {
		text += "; by bindings that are not theirs alone: " + strings.Join(edits(f.left[:min(len(f.left), shownOfUser)]), ", ")
	}
	byNamespace := map[string]int{}
	for _, line := range f.may {
		namespace, rule, _ := strings.Cut(line, "\t")
		if byNamespace[namespace]++; byNamespace[namespace] <= shownOfUser {
			text += fmt.Sprintf("; in %s: %s", namespace, rule)
		}
	}
	return text
}

// bindingShape is what names a binding to kubectl and means nothing to a shell.
var bindingShape = regexp.MustCompile(`^(-n [a-z0-9-]+ )?(cluster)?rolebinding [A-Za-z0-9:._@][A-Za-z0-9:._@-]*$`)

// edits are commands to copy. What could be more than the name of a binding becomes no command.
func edits(bindings []string) []string {
	var out []string
	for _, b := range bindings {
		if bindingShape.MatchString(b) {
			out = append(out, "`kubectl edit "+b+"`")
		} else {
			out = append(out, fmt.Sprintf("one whose name is no plain word (%q)", b))
		}
	}
	return out
}

// String says what a user who has no rights any more leaves behind.
func (f *farewell) String() string {
	end := "until its end"
	if !f.until.IsZero() {
		end = "until " + f.until.Format(time.DateOnly)
	}
	text := fmt.Sprintf("done: the API server grants %s nothing any more. The certificate cannot be revoked: %s it says who they are, which opens nothing as long as there is no new user of that name", f.name, end)
	if len(f.namespaces) > 0 {
		text += "; what they made is still there, in " + strings.Join(f.namespaces, ", ")
	}
	if len(f.pods) > 0 {
		text += "; there, pods run on: " + some(f.pods)
	}
	return text
}

// some names the first few of many.
func some(all []string) string {
	if len(all) > shownOfUser {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:shownOfUser], ", "), len(all)-shownOfUser)
	}
	return strings.Join(all, ", ")
}
