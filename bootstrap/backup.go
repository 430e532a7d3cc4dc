package bootstrap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/archive"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// BackupOptions are what Backup needs beyond what all stories need.
type BackupOptions struct {
	File       string   // the archive; empty: named after cluster and time, in the working directory
	Recipients []string // of age, to whom the archive is encrypted; none: it is not
	Version    string   // of kgpu
	Now        time.Time
	Out        io.Writer // where the last words go; nil: nowhere
}

// Where hosts keep what a backup takes of them, and what they are sent for a restore; and how long a transfer may take.
const (
	backupFolder     = "/var/lib/kgpu/backup/"
	restoreFolder    = "/var/lib/kgpu/restore/"
	transferPatience = 2 * time.Hour
)

// Backup writes an archive of the cluster: a snapshot of etcd, what a control plane is known by, the inventory, and the ledgers of all
// hosts that answer. Nothing of it stays on the hosts: what a backup that was killed left goes with the next one. It returns the
// archive's name.
func Backup(ctx context.Context, o Options, bo BackupOptions) (file string, err error) {
	w, file, err := createArchive(o.Inventory, bo)
	if err != nil {
		return "", err
	}
	s, err := session.OpenToChange(ctx, o.Options, o.Inventory.Hosts, func(h inventory.Host, err error) bool {
		o.Tell(event.Event{Host: h.ID(), Kind: event.Warning, Text: "the backup goes on without it: " + err.Error()})
		return true
	})
	if err != nil {
		return "", errors.Join(err, w.Remove())
	}
	defer s.Close()
	b := &backup{Session: s, to: w}
	if err := s.Locked(ctx, b.write); err != nil {
		return "", errors.Join(err, w.Remove())
	}
	b.about.Kgpu = bo.Version
	size, err := w.Close(b.about)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", file, err)
	}
	if bo.Out == nil {
		return file, nil
	}
	return file, report.PrintBackup(bo.Out, file, size, len(bo.Recipients) > 0, b.told, len(o.Inventory.Hosts))
}

// createArchive begins the archive, before anything is asked of the hosts.
func createArchive(inv *inventory.Inventory, bo BackupOptions) (*archive.Writer, string, error) {
	to, err := archive.Recipients(bo.Recipients)
	if err != nil {
		return nil, "", &reason.UsageError{Message: err.Error()}
	}
	file := cmp.Or(bo.File, archive.Name(inv.Cluster, bo.Now, len(to) > 0))
	w, err := archive.Create(file, to, bo.Now)
	switch {
	case errors.Is(err, fs.ErrExist):
		err = reason.Usagef("%s is there already, and stays as it is: name another file with --file", file)
	case err != nil:
		err = reason.Usagef("the archive cannot be written: %v; name another file with --file", err)
	}
	return w, file, err
}

// backup is one that is being written.
type backup struct {
	*session.Session
	to    *archive.Writer
	about archive.Manifest
	told  int // hosts of which it has something
}

func (b *backup) write(ctx context.Context) error {
	set := machine.SetOf(b.Inventory, b.Facts)
	if err := b.mayBackUp(set); err != nil {
		return err
	}
	take, clear, err := plan.Backup(b.Inventory, b.Facts)
	if err != nil {
		return err
	}
	result, failed := b.Execute(ctx, take)
	if ctx.Err() != nil {
		return failed
	}
	admin := b.AdminPlane().ID()
	said := result.Outputs[graph.Ref{Host: admin, ID: plan.TakeStep}]
	if said == nil {
		_, err := b.Execute(ctx, clear)
		return errors.Join(failed, err)
	}
	for _, e := range reason.All(failed) {
		b.Tell(event.Event{Host: e.Host, Kind: event.Warning, Reason: string(e.ID), Text: "the backup goes on without it: " + e.Error()})
	}
	err = b.archive(ctx, set, said, result.Outputs)
	_, uncleared := b.Execute(ctx, clear)
	return errors.Join(err, uncleared)
}

// mayBackUp is the error of a cluster of which there can be no backup.
func (b *backup) mayBackUp(set *machine.Set) error {
	switch v := set.Versions.Running; {
	case !set.ClusterExists():
		return &reason.Error{ID: reason.ClusterMissing, Host: b.AdminPlane().ID(), Detail: "there is no cluster on this host"}
	case v.Minor < plan.RestoresSince:
		return reason.Usagef("backups are for Kubernetes 1.%d and newer, and the cluster runs %s", plan.RestoresSince, v)
	}
	return nil
}

// archive writes what the hosts have taken into the archive.
func (b *backup) archive(ctx context.Context, set *machine.Set, said map[string][]byte, outputs graph.Outputs) error {
	if err := b.describe(set, said); err != nil {
		return err
	}
	text, err := os.ReadFile(b.Inventory.Path)
	if err != nil {
		return err
	}
	if err := b.to.AddBytes(archive.Inventory, text); err != nil {
		return err
	}
	for _, h := range b.RemainingHosts() {
		out := outputs[graph.Ref{Host: h.ID(), ID: plan.TakeStep}]
		if out == nil {
			continue
		}
		if err := b.fetch(ctx, h.ID(), out[plan.OutputFiles]); err != nil {
			return err
		}
		b.told++
	}
	return nil
}

// fetch streams the files of a host into the archive. The host has told their sums.
func (b *backup) fetch(ctx context.Context, id string, listed []byte) error {
	for line := range strings.Lines(string(listed)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		name, ok := map[string]string{archive.Snapshot: archive.Snapshot, archive.PlaneFiles: archive.PlaneFiles, "ledger.tar": archive.Ledger(id)}[f[0]]
		if !ok || len(f) != 3 {
			return &reason.Error{ID: reason.BackupFailed, Host: id, Step: plan.TakeStep, Detail: "it tells of files that no backup has"}
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return &reason.Error{ID: reason.BackupFailed, Host: id, Step: plan.TakeStep, Err: err}
		}
		err = b.to.Add(name, size, f[2], func(to io.Writer) error {
			return b.Conn(id).Download(ctx, backupFolder+f[0], to, session.Bounds{Bytes: size, Time: transferPatience})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// describe fills the manifest with what is known of the cluster.
func (b *backup) describe(set *machine.Set, said map[string][]byte) error {
	var snapshot struct{ Revision, TotalKey int64 }
	if err := json.Unmarshal(said[plan.OutputSnapshot], &snapshot); err != nil {
		return &reason.Error{ID: reason.BackupFailed, Host: b.AdminPlane().ID(), Step: plan.TakeStep, Doing: "reading what etcdutl says of the snapshot", Err: err}
	}
	about := map[string]string{}
	for line := range strings.Lines(string(said[plan.OutputAbout])) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		about[key] = value
	}
	c := set.First.Facts.ControlPlane
	b.about = archive.Manifest{
		Cluster: b.Inventory.Cluster, CA: c.CAHash, Kubernetes: set.Versions.Running.String(), Etcd: about["etcd"], Endpoint: c.Endpoint,
		Encrypted: about["encrypted"] != "", Settings: archive.Settings(plan.SettingsOf(set)), Revision: snapshot.Revision, Keys: snapshot.TotalKey,
	}
	for _, h := range b.Inventory.Hosts {
		b.about.Hosts = append(b.about.Hosts, hostOf(h, b.Facts[h.ID()]))
	}
	return nil
}

func hostOf(h inventory.Host, seen *facts.Host) archive.Host {
	out := archive.Host{ID: h.ID(), Address: h.Address, Role: string(h.Role)}
	if seen != nil {
		m := machine.Machine{Host: h, Facts: seen}
		out.Node, out.Address = m.NodeName(), m.NodeAddress().String()
	}
	return out
}
