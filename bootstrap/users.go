package bootstrap

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/nearest"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/scripts"
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
	u := plan.User{Name: uo.Name, Namespace: uo.Namespace, Role: uo.Role, Lifetime: time.Duration(uo.Days) * 24 * time.Hour, GPUs: uo.GPUs}
	if u.Namespace == "" {
		u.Namespace = u.Name
	}
	if err := u.Valid(); err != nil {
		return "", &reason.UsageError{Message: err.Error()}
	}
	if uo.Days < 1 || uo.Days > maxDays {
		return "", reason.Usagef("--days is 1 to %d, not %d", maxDays, uo.Days)
	}
	if v := o.Inventory.Kubernetes.Version; uo.GPUs != nil && v.Minor < plan.CardQuotasSince {
		return "", reason.Usagef("--gpus needs Kubernetes 1.%d or newer, and the inventory has %s", plan.CardQuotasSince, v)
	}
	file := uo.File
	if file == "" {
		file = filepath.Join(filepath.Dir(o.Inventory.Path), o.Inventory.Cluster+"-"+u.Name+".kubeconfig")
	}
	if err := replaceable(file, u.Name); err != nil {
		return "", err
	}
	key, request, err := newRequest(u.Name)
	if err != nil {
		return "", err
	}
	u.Request = request
	var out string
	err = onControlPlane(ctx, o, func(ctx context.Context, s *story) error {
		graph, err := plan.CreateUser(s.Inventory, s.Facts, u)
		if err != nil {
			return err
		}
		_, inside, err := s.admin(ctx)
		if err != nil {
			return err
		}
		a := s.named(inside)
		done, err := s.Execute(ctx, graph)
		if err != nil {
			return err
		}
		said := done.Outputs[graph.Steps[0].Ref]
		cert, certificate, err := s.userCertificate(said[plan.OutputCertificate], key, a.CA, u.Name)
		if err != nil {
			return err
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
			return local("writing "+file, err)
		}
		s.warnOfGit(file)
		s.warnOfUser(u, cert, strings.TrimSpace(string(said[plan.OutputEnforced])))
		out = fmt.Sprintf("done: wrote %s for %s, valid until %s: kubectl --kubeconfig %s get pods", file, u.Name, cert.NotAfter.Format(time.DateOnly), file)
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
		return local("looking at "+file, err)
	}
	if line, _, _ := bytes.Cut(data, []byte("\n")); string(line) != userMark+user {
		return reason.Usagef("%s is there already, is no kubeconfig that kgpu made for %s, and stays as it is: name another file with --file", file, user)
	}
	return nil
}

// newRequest makes a key, and asks for a certificate that says whose it is; both PEM.
func newRequest(user string) (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{plan.UsersGroup}},
	}, private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// userCertificate reads what the cluster has signed: it must be the user's, for their key, and signed by the cluster's authority.
// It returns the certificate as text too, written anew.
func (s *story) userCertificate(sent, key, authority []byte, user string) (*x509.Certificate, []byte, error) {
	text, err := kubeconfig.ClientCertificate(sent, authority)
	if err != nil {
		return nil, nil, s.userRefused("", err)
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, nil, s.userRefused("", err)
	}
	if pair.Leaf.Subject.CommonName != user {
		return nil, nil, s.userRefused(fmt.Sprintf("the certificate is %q's", pair.Leaf.Subject.CommonName), nil)
	}
	return pair.Leaf, text, nil
}

func (s *story) userRefused(detail string, err error) error {
	return &reason.Error{ID: reason.UserRefused, Host: s.AdminPlane().ID(), Doing: "reading the user's certificate", Detail: detail, Err: err}
}

// warnOfUser tells what the user's rights are not.
func (s *story) warnOfUser(u plan.User, cert *x509.Certificate, enforced string) {
	if short := u.Lifetime - time.Until(cert.NotAfter); short > 24*time.Hour {
		s.warn("the cluster signs for a shorter time than you asked for: the certificate ends on %s", cert.NotAfter.Format(time.DateOnly))
	} else if -short > 24*time.Hour {
		s.warn("this Kubernetes signs for a longer time than you asked for: the certificate ends on %s", cert.NotAfter.Format(time.DateOnly))
	}
	if u.Role == "view" || enforced == "baseline" || enforced == "restricted" {
		return
	}
	if plan.NamespacesRefusePods(s.settled()) {
		s.warn("the namespace %[1]s lets pods have the files and the network of their node, and with those the cluster: `kubectl label namespace %[1]s pod-security.kubernetes.io/enforce=baseline` refuses them", u.Namespace)
		return
	}
	s.warn("Kubernetes before 1.23 does not refuse pods that have the files and the network of their node, and with those the cluster: give this kubeconfig only to whom you trust with that")
}

// noSuchUser is the error of a name that is no user's, and says whose may be meant.
func (s *story) noSuchUser(ctx context.Context, name string) error {
	hint := ""
	if users, err := s.users(ctx); err == nil {
		var names []string
		for _, u := range users {
			names = append(names, u.Name)
		}
		hint = nearest.Hint(name, names)
	}
	return reason.Usagef("kgpu has made no user %q in this cluster.%s (kgpu user list)", name, hint)
}

// Users are the users that CreateUser made.
func Users(ctx context.Context, o Options) ([]report.User, error) {
	s, err := enter(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.users(ctx)
}

func (s *story) users(ctx context.Context) ([]report.User, error) {
	answer, err := s.ask(ctx, "users", "")
	if err != nil {
		return nil, err
	}
	var out []report.User
	for line := range strings.Lines(answer) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			return nil, s.misunderstood("users")
		}
		u := report.User{Name: f[0], Namespace: f[1], Role: f[2]}
		u.Until = certificateEnd(f[3])
		out = append(out, u)
	}
	return out, nil
}

// certificateEnd reads what openssl prints; zero: it is not known.
func certificateEnd(text string) time.Time {
	end, err := time.Parse("Jan _2 15:04:05 2006 MST", text)
	if err != nil {
		return time.Time{}
	}
	return end
}

// onControlPlane looks at the control plane, and does work there while no other kgpu changes the cluster.
func onControlPlane(ctx context.Context, o Options, work func(context.Context, *story) error) error {
	return session.OnPlanes(ctx, o.Options, func(ctx context.Context, s *session.Session) error { return work(ctx, &story{Session: s, want: o}) })
}

// What is asked about something in the cluster is answered in some kilobytes.
var askBounds = remote.Bounds{Bytes: 4 << 20, Time: 3 * time.Minute}

// ask runs a script of scripts/access on the control plane, with this behind it, and returns what it prints between its first
// and its last line.
func (s *story) ask(ctx context.Context, name, input string) (string, error) {
	cp := s.AdminPlane().ID()
	out, err := s.Ask(ctx, cp, name, true, slices.Concat(scripts.Access(name), []byte(input)), askBounds)
	var exit *remote.ExitError
	if errors.As(err, &exit) {
		if missing := s.clusterMissing(ctx); missing != nil {
			return "", missing
		}
		return "", &reason.Error{ID: reason.APIUnreachable, Host: cp, Doing: "asking the API server", Exit: &exit.Status, Stderr: exit.Stderr, Err: err}
	}
	if err != nil {
		return "", err
	}
	text, begins := strings.CutPrefix(string(out), "kgpu-"+name+"=1\n")
	text, ends := strings.CutSuffix(text, "end=1\n")
	if !begins || !ends {
		return "", s.misunderstood(name, out...)
	}
	return text, nil
}

// misunderstood is the error of an answer that is none; its end is the host's own word.
func (s *story) misunderstood(what string, answer ...byte) error {
	return &reason.Error{
		ID: reason.FactsFailed, Host: s.AdminPlane().ID(), Doing: "asking about the " + what, Detail: "the host's answer is not one that kgpu understands",
		Stderr: string(answer[max(0, len(answer)-session.AnswerShown):]),
	}
}
