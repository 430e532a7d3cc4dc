package command

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/archive"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Backup is kgpu backup.
func Backup() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "write what the cluster keeps, and is known by, into one file", ArgsUsage: inventoryArgument,
		Description: "A snapshot of etcd, which is checked, the keys and certificates of the control plane, the inventory, and what kgpu recorded on\n" +
			"the hosts. `kgpu restore` makes the cluster of it again. Who reads the file rules the cluster: keep it safe, or have it\n" +
			"encrypted with --recipient. Kubernetes 1.30 and newer.",
		Flags: slices.Concat(inventoryFlags, sshFlags, archiveFlags, outputFlags), Action: backup,
	}
}

var archiveFlags = []cli.Flag{
	&cli.StringFlag{Name: "file", Usage: "write to `FILE` (default: kgpu-backup-CLUSTER-TIME.tar.gz here); a file that is there stays", TakesFile: true},
	&cli.StringSliceFlag{Name: "recipient", Usage: "encrypt it to this age `RECIPIENT`, age1… (may be repeated)"},
}

func backup(c *cli.Context) error {
	return story(c, func(o bootstrap.Options, t *terminal) error {
		file, err := bootstrap.Backup(c.Context, o, bootstrap.BackupOptions{
			File: c.String("file"), Recipients: c.StringSlice("recipient"), Version: c.App.Version, Now: time.Now(), Out: t.words(),
		})
		if err == nil {
			t.ended = "done: wrote " + file
		}
		return err
	})
}

// words is where a story says what it has to say at its end, beside its events; nil: nobody reads it.
func (t *terminal) words() io.Writer {
	if t.kind == report.JSON || t.detail == report.Quiet {
		return nil
	}
	return t.out
}

// Restore is kgpu restore.
func Restore() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "give the cluster the data of a backup again, on the same hosts or on others", ArgsUsage: "FILE",
		Description: "The file is checked whole before anything is touched. It asks for the cluster's name first: what was stored since the backup\n" +
			"is no longer in the cluster, and pods that it does not know end. The data that etcd has is kept on the control plane, in\n" +
			"/var/lib/etcd.before-TIME. When it was stopped, the same command carries on.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, identityFlags, outputFlags, kubeconfigFlags, yesFlags), Action: restore,
	}
}

var identityFlags = []cli.Flag{
	&cli.StringFlag{Name: "identity", Usage: "decrypt it with the age identity in `FILE`", TakesFile: true},
}

func restore(c *cli.Context) error {
	switch c.NArg() {
	case 0:
		return usagef("which backup? kgpu restore FILE")
	case 1:
	default:
		return usagef("one backup at a time, not %d: %q", c.NArg(), c.Args().Slice())
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.Restore(c.Context, o, bootstrap.RestoreOptions{
			File: c.Args().First(), Identity: c.String("identity"), Show: t.showPlan,
			Sure: func(g *graph.Graph, a *archive.Archive) error {
				if err := t.showPlan(g); err != nil {
					return err
				}
				what := fmt.Sprintf("This gives the cluster %s what it kept on %s: all that came since is lost, and pods that it does not know end.",
					o.Inventory.Cluster, a.Made.UTC().Format("2006-01-02 15:04 UTC"))
				return t.confirm(c, what, o.Inventory.Cluster)
			},
		})
	})
}
