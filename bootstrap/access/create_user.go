package access

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
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
func CreateUser(ctx context.Context, o session.Options, uo UserOptions) (string, error) {
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
	err = session.OnPlanes(ctx, o, func(ctx context.Context, s *session.Session) error {
		c := To(s, "")
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
			return FileError("writing "+file, err)
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
		return FileError("looking at "+file, err)
	}
	if line, _, _ := bytes.Cut(data, []byte("\n")); string(line) != userMark+user {
		return reason.Usagef("%s is there already, is no kubeconfig that kgpu made for %s, and stays as it is: name another file with --file", file, user)
	}
	return nil
}

// warnOfUser tells what the user's rights are not.
func warnOfUser(c *Cluster, u plan.User, until time.Time, enforced string) {
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
