package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/proposal"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// InitOptions are what Init needs.
type InitOptions struct {
	session.Options // without an inventory: that is written
	Targets         []inventory.Target
	File            string // where the inventory goes; "-": Out
	Cluster         string // name; empty: the default
	Modern          bool   // flannel and containerd, whatever the hosts could run

	inventory.Way

	// Follow is what comes behind the name of a command that shall use this inventory: flags and a file, with a blank in front;
	// empty: it is found where it is.
	Follow string

	Out, Talk io.Writer // where the inventory goes if that is no file, and what is said about it
	Now       time.Time
}

// Init looks at hosts, all at the same time, and writes an inventory of what it found. It changes nothing on any host, and no
// file that is there. Hosts that could not be looked at are comments in the inventory, and in the error; if there are no
// others, or keys that nobody can be asked about, nothing is written.
func Init(ctx context.Context, o InitOptions) error {
	if err := o.absent(); err != nil {
		return err
	}
	ssh, err := o.Draft()
	if err != nil {
		return err
	}
	common, err := inventory.Template(o.path(), cmp.Or(o.Cluster, "kgpu"), ssh, o.Now)
	if err != nil {
		return err
	}
	seen, err := o.visit(ctx, common)
	if err != nil {
		return err
	}
	if errs := leftOut(seen); len(errs) == len(seen) {
		return errors.Join(errs...)
	}
	p, err := proposal.Make(seen, proposal.Options{
		Path: o.path(), Cluster: common.Cluster, Version: common.Kubernetes.Version.MinorString(), Modern: o.Modern, SSH: ssh, Decode: inventory.Options{Now: o.Now},
	})
	if err != nil {
		return err
	}
	if err := o.write(p); err != nil {
		return err
	}
	var errs []error
	for _, e := range p.Excluded {
		if o.File != "-" {
			e.Advice = fmt.Sprintf("%s; %s has it as a comment: take the # away, or the entry", e.AdviceLine(), o.File)
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// absent wants nothing where the inventory is to be.
func (o InitOptions) absent() error {
	if o.File == "-" {
		return nil
	}
	if _, err := os.Lstat(o.File); err == nil {
		return o.there()
	}
	if info, err := os.Stat(filepath.Dir(o.File)); err != nil || !info.IsDir() {
		return reason.Usagef("there is no folder %s for the inventory", filepath.Dir(o.File))
	}
	return nil
}

func (o InitOptions) there() error {
	return reason.Usagef("%s is there already, and stays as it is: name another file with --file, or --file - to see what would be written", o.File)
}

// path is the file's name, also of one that is only printed: paths in it start here then.
func (o InitOptions) path() string {
	if o.File == "-" {
		return "inventory.yaml"
	}
	return o.File
}

// visit looks at the hosts. Those whose keys are pinned now are visited once more.
func (o InitOptions) visit(ctx context.Context, common *inventory.Inventory) ([]proposal.Observed, error) {
	way := common.Hosts[0].SSH
	common.Hosts = nil
	seen := make([]proposal.Observed, len(o.Targets))
	at := map[string]int{}
	for i, t := range o.Targets {
		h := inventory.Host{Address: t.Address, Role: inventory.Worker, SSH: way}
		h.SSH.User, h.SSH.Port = cmp.Or(t.User, way.User), t.Port
		common.Hosts, seen[i].Target, at[t.Address] = append(common.Hosts, h), t, i
	}
	o.Inventory = common
	s := session.New(o.Options)
	defer s.Close()
	s.Tell(event.Event{Kind: event.Wait, Text: fmt.Sprintf("hosts to tell what they are: %d", len(seen))})
	meet := func(hosts []inventory.Host) {
		_ = session.Each(hosts, func(h inventory.Host) error {
			seen[at[h.Address]].Excluded = asReason(h, s.ConnectAndGather(ctx, h))
			return nil
		})
	}
	meet(common.Hosts)
	if o.AcceptNew {
		meet(pin(seen, common.Hosts))
	}
	err := strangers(seen)
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, &reason.Error{ID: reason.Cancelled, Err: context.Cause(ctx), Detail: "cancelled; nothing was written", Advice: "run the same command again"}
	}
	for i, h := range common.Hosts {
		seen[i].Facts, seen[i].Skew = s.FactsOf(h.ID())
		advise(seen[i].Excluded)
	}
	return seen, nil
}

// pin trusts the keys that nobody knows, and returns the hosts that have them, to be met again.
func pin(seen []proposal.Observed, hosts []inventory.Host) []inventory.Host {
	var out []inventory.Host
	for i := range seen {
		if unknown := session.UnknownKey(seen[i].Excluded); unknown != nil && !unknown.Bastion {
			seen[i].HostKey = unknown.Line()
			seen[i].HostKeyNote = unknown.Fingerprint() + ", taken as it was shown when this was written (--accept-new)"
			h := hosts[i]
			h.SSH.HostKey = seen[i].HostKey
			out = append(out, h)
		}
	}
	return out
}

// strangers is the error of hosts whose keys nobody knows: an inventory without them would be half of what was asked for.
func strangers(seen []proposal.Observed) error {
	if !slices.ContainsFunc(seen, func(s proposal.Observed) bool { u := session.UnknownKey(s.Excluded); return u != nil && !u.Bastion }) {
		return nil
	}
	for i := range seen {
		advise(seen[i].Excluded)
	}
	return errors.Join(leftOut(seen)...)
}

// advise says what helps here, where there is no inventory yet.
func advise(e *reason.Error) {
	if e == nil {
		return
	}
	switch unknown := session.UnknownKey(e); {
	case unknown != nil && unknown.Bastion:
		e.Advice = "that is a host on the way: log in there once with ssh, which asks, and puts its key into known_hosts"
	case unknown != nil:
		e.Advice = fmt.Sprintf("compare the fingerprint with the machine's own (`ssh-keygen -lf %s`). Then run this on a terminal, which asks, or with --accept-new", unknown.File())
	case e.ID == reason.SSHAuthFailed:
		e.Advice = "name the user and the key: `kgpu init --user USER --key FILE …`, or USER@ADDRESS; the public key must be in the user's authorized_keys on the host"
	case e.ID == reason.SSHCommandRefused && e.Advice == "":
		e.Advice = "log in as a user who may run commands: `kgpu init --user USER …`, or USER@ADDRESS"
	case e.ID == reason.SSHCommandRefused && session.OtherUser(e) != "":
		e.Advice = fmt.Sprintf("the host itself says which user to log in as: `kgpu init --user %s …`, or %[1]s@ADDRESS", session.OtherUser(e))
	case e.ID == reason.SudoRefused:
		e.Advice = "give the user sudo rights, or say where the password is: --sudo-password '${NAME}' (an environment variable) or file:PATH"
	}
}

func leftOut(seen []proposal.Observed) []error {
	var out []error
	for _, s := range seen {
		if s.Excluded != nil {
			out = append(out, s.Excluded)
		}
	}
	return out
}

// write writes the inventory, and says what is in it and what to do next.
func (o InitOptions) write(p *proposal.Proposal) error {
	where := o.File
	if o.File == "-" {
		if _, err := o.Out.Write(p.Text); err != nil {
			return err
		}
		where = "not written to a file"
	} else if err := atomicfile.Create(o.File, p.Text, 0o644); errors.Is(err, fs.ErrExist) {
		return o.there()
	} else if err != nil {
		return reason.Usagef("the inventory cannot be written: %v; name another file with --file, or --file - to see what would be written", err)
	}
	return report.PrintProposal(o.Talk, p, where, o.next())
}

// next is what to do with the inventory.
func (o InitOptions) next() [][2]string {
	return [][2]string{
		{"kgpu plan" + o.Follow, "what would be done on each host, and why; changes nothing"},
		{"kgpu up" + o.Follow, "makes the cluster"},
	}
}
