package bootstrap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// UserOptions are what CreateUser needs beyond what all stories need.
type UserOptions struct {
	Name      string
	Namespace string // empty: like the user
	Role      string // view, edit or admin
	Days      int    // that the certificate shall be valid
	GPUs      *int   // cards, of each kind, that pods of the namespace may have at once; nil: no limit, or the one that there is
	File      string // the kubeconfig; empty: CLUSTER-USER.kubeconfig beside the inventory
}

const maxDays = 10 * 365

// A kubeconfig that begins so is one that kgpu made for a user, and may be replaced.
const userMark = "# kgpu: the kubeconfig of user "

// CreateUser makes a kubeconfig for somebody who may work in one namespace, and lets them. The private key is made here and
// never leaves this machine. It returns, for people, what has become of it.
func CreateUser(ctx context.Context, o Options, uo UserOptions) (string, error) {
	u := plan.User{Name: uo.Name, Namespace: cmp.Or(uo.Namespace, uo.Name), Role: uo.Role, Lifetime: time.Duration(uo.Days) * 24 * time.Hour, GPUs: uo.GPUs}
	if err := u.Valid(); err != nil {
		return "", &reason.UsageError{Message: err.Error()}
	}
	if uo.Days < 1 || uo.Days > maxDays {
		return "", reason.Usagef("--days is 1 to %d, not %d", maxDays, uo.Days)
	}
	if v := o.Inventory.Kubernetes.Version; uo.GPUs != nil && v.Minor < plan.CardQuotasSince {
		return "", reason.Usagef("--gpus needs Kubernetes 1.%d or newer, and the inventory has %s", plan.CardQuotasSince, v)
	}
	file := cmp.Or(uo.File, filepath.Join(filepath.Dir(o.Inventory.Path), o.Inventory.Cluster+"-"+u.Name+".kubeconfig"))
	if err := replaceable(file, u.Name); err != nil {
		return "", err
	}
	key, request, err := kubeconfig.NewRequest(u.Name, plan.UsersGroup)
	if err != nil {
		return "", err
	}
	u.Request = request
	var out string
	err = session.OnPlanes(ctx, o.Options, func(ctx context.Context, s *session.Session) error {
		c := access.To(s, o.Kubeconfig)
		graph, err := plan.CreateUser(s.Inventory, s.Facts, u)
		if err != nil {
			return err
		}
		a, err := c.Admin(ctx)
		if err != nil {
			return err
		}
		done, err := s.Execute(ctx, graph)
		if err != nil {
			return err
		}
		said := done.Outputs[graph.Steps[0].Ref]
		certificate, until, err := kubeconfig.UserCertificate(said[plan.OutputCertificate], key, a.CA, u.Name)
		if err != nil {
			return &reason.Error{ID: reason.UserRefused, Host: s.AdminPlane().ID(), Doing: "reading the user's certificate", Err: err}
		}
		mine := kubeconfig.Access{
			Cluster: a.Cluster, User: u.Name, Context: u.Name + "@" + a.Cluster, Namespace: u.Namespace,
			Server: a.Server, TLSServerName: a.TLSServerName, CA: a.CA, Certificate: certificate, Key: key,
		}
		text, err := mine.Encode()
		if err != nil {
			return err
		}
		if err := atomicfile.Write(file, append([]byte(userMark+u.Name+"\n"), text...), 0o600); err != nil {
			return access.FileError("writing "+file, err)
		}
		c.WarnOfGit(file)
		warnOfUser(c, u, until, strings.TrimSpace(string(said[plan.OutputEnforced])))
		out = fmt.Sprintf("done: wrote %s for %s, valid until %s: kubectl --kubeconfig %s get pods", file, u.Name, until.Format(time.DateOnly), file)
		return nil
	})
	return out, err
}

// replaceable refuses a file that is not the kubeconfig of this user.
func replaceable(file, user string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) { // a folder that is missing is told before the user has rights
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return reason.Usagef("there is no folder %s for the kubeconfig", filepath.Dir(file))
		}
		return nil
	}
	if err != nil {
		return access.FileError("looking at "+file, err)
	}
	if line, _, _ := bytes.Cut(data, []byte("\n")); string(line) != userMark+user {
		return reason.Usagef("%s is there already, is no kubeconfig that kgpu made for %s, and stays as it is: name another file with --file", file, user)
	}
	return nil
}

// warnOfUser tells what the user's rights are not.
func warnOfUser(c *access.Cluster, u plan.User, until time.Time, enforced string) {
	if short := u.Lifetime - time.Until(until); short > 24*time.Hour {
		c.Warn("the cluster signs for a shorter time than you asked for: the certificate ends on %s", until.Format(time.DateOnly))
	} else if -short > 24*time.Hour {
		c.Warn("this Kubernetes signs for a longer time than you asked for: the certificate ends on %s", until.Format(time.DateOnly))
	}
	if u.Role == "view" || enforced == "baseline" || enforced == "restricted" {
		return
	}
	if plan.NamespacesRefusePods(machine.SetOf(c.Inventory, c.Facts).Inventory) {
		c.Warn("the namespace %[1]s lets pods have the files and the network of their node, and with those the cluster: `kubectl label namespace %[1]s pod-security.kubernetes.io/enforce=baseline` refuses them", u.Namespace)
		return
	}
	c.Warn("Kubernetes before 1.23 does not refuse pods that have the files and the network of their node, and with those the cluster: give this kubeconfig only to whom you trust with that")
}

// noSuchUser is the error of a name that is no user's, and says whose may be meant.
func noSuchUser(ctx context.Context, c *access.Cluster, name string) error {
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

// DeleteUser takes all rights from a user that CreateUser gave, that somebody gave to them alone, or that they gave themselves in
// a namespace of their own, and asks the API server what they may then. It returns, for people, what is left. Where there is
// no such user, the error is a *reason.UsageError; where they still have rights, the reason is UserRightsLeft.
func DeleteUser(ctx context.Context, o Options, name string) (string, error) {
	if err := (plan.User{Name: name, Namespace: "x", Role: "view"}).Valid(); err != nil {
		return "", &reason.UsageError{Message: err.Error()}
	}
	var out string
	err := session.OnPlanes(ctx, o.Options, func(ctx context.Context, s *session.Session) error {
		graph, err := plan.DeleteUser(s.Inventory, s.Facts, name)
		if err != nil {
			return err
		}
		done, err := s.Execute(ctx, graph)
		if err != nil {
			return err
		}
		c, said := access.To(s, o.Kubeconfig), done.Outputs[graph.Steps[0].Ref]
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
		if end := access.CertificateEnd(line); end.After(f.until) {
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
