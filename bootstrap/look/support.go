package look

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/records"
	"kgpu.dev/kgpu/bootstrap/records/support"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// SupportOptions are what Support needs beyond what all stories need.
type SupportOptions struct {
	File    string // the bundle; empty: named after cluster and time, in the working directory
	Version string // of kgpu
	Now     time.Time
	Out     io.Writer // where the last words go
}

const (
	supportTogether = 16              // hosts that are asked at the same time: each takes some megabytes of memory
	supportPatience = 4 * time.Minute // for one host
)

// Support gathers what helps to find a fault: versions, the inventory, what the last runs left here, and from every host that
// can be reached its facts, logs and state, all scrubbed. It changes nothing anywhere. A host that cannot be reached is told
// about in the bundle; it is an error only if no host can be reached.
func Support(ctx context.Context, o session.Options, so SupportOptions) error {
	bundle, file, err := records.CreateBundle(o.Inventory, so.File, so.Now)
	if err != nil {
		return err
	}
	o.Tell(event.Event{Kind: event.Wait, Text: "facts and logs of " + plural.Of(len(o.Inventory.Hosts), "host")})
	unreached, err := gather(ctx, o, so, bundle)
	if ctx.Err() != nil {
		err = &reason.Error{ID: reason.Cancelled, Err: context.Cause(ctx), Detail: "cancelled; no bundle was written", Advice: "run the same command again"}
	}
	if err != nil {
		return errors.Join(err, bundle.Remove())
	}
	size, err := bundle.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("writing the bundle: %w", err), os.Remove(file))
	}
	all := len(o.Inventory.Hosts)
	if err := report.PrintBundle(so.Out, file, size, all-len(unreached), all); err != nil {
		return err
	}
	if len(unreached) == all {
		return errors.Join(unreached...)
	}
	return nil
}

// gather puts everything into the bundle. It returns the errors of the hosts that told nothing.
func gather(ctx context.Context, o session.Options, so SupportOptions, bundle *support.Bundle) (unreached []error, err error) {
	s := session.New(o)
	defer s.Close()
	hosts := o.Inventory.Hosts
	told, failures := make([]int, len(hosts)), make([]error, len(hosts))
	var group errgroup.Group
	group.SetLimit(supportTogether)
	var runs string
	group.Go(func() (err error) {
		runs, err = records.AddRuns(o.Inventory, bundle)
		return err
	})
	for i, h := range hosts {
		group.Go(func() error {
			files, err := tell(ctx, s, h)
			told[i], failures[i] = len(files), err
			if err != nil {
				s.Tell(event.Event{Host: h.ID(), Kind: event.Warning, Text: err.Error()})
				files = append(files, support.Entry{Name: "error.txt", Content: described(err)})
			}
			for _, f := range files {
				if err := bundle.Add(path.Join("hosts", support.Folder(h.ID()), f.Name), f.Content); err != nil {
					return fmt.Errorf("writing the bundle: %w", err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var about bytes.Buffer
	fmt.Fprintf(&about, "kgpu %s (%s, %s/%s)\nrun %s, %s\n\n", so.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, o.Run, so.Now.UTC().Format(time.RFC3339))
	for i, h := range hosts {
		fmt.Fprintf(&about, "%s: %s", h.ID(), plural.Of(told[i], "file"))
		if failures[i] != nil {
			fmt.Fprintf(&about, "; %v", failures[i])
		}
		fmt.Fprintln(&about)
		if told[i] == 0 {
			unreached = append(unreached, failures[i])
		}
	}
	about.WriteString("\n" + runs)
	text, err := os.ReadFile(o.Inventory.Path)
	if err != nil {
		text = []byte(err.Error())
	}
	return unreached, errors.Join(bundle.Add("about.txt", about.Bytes()), bundle.Add("inventory.yaml", text))
}

// described is an error with all its lines, as kgpu prints it.
func described(err error) []byte {
	var b bytes.Buffer
	report.PrintError(&b, err)
	return b.Bytes()
}

// tell asks a host for all that it can tell. Names of the result are those of files, and there may be some in spite of an error.
func tell(ctx context.Context, s *session.Session, h inventory.Host) (files []support.Entry, err error) {
	if _, err := s.Connect(ctx, h); err != nil {
		return nil, err
	}
	defer s.Disconnect(h.ID())
	ctx, cancel := context.WithTimeoutCause(ctx, supportPatience, fmt.Errorf("the host took more than %s", supportPatience))
	defer cancel()
	raw, err := printed(ctx, s, h.ID(), session.Question{Name: "facts", Script: scripts.Facts()})
	if len(raw) == 0 && err != nil {
		return nil, session.FactsError(h.ID(), err)
	}
	files = append(files, support.Entry{Name: "facts.txt", Content: raw})
	seen, wrong := facts.Parse(raw)
	if wrong == nil {
		text, marshalling := json.MarshalIndent(seen, "", "  ")
		files, wrong = append(files, support.Entry{Name: "facts.json", Content: text}), marshalling
	}
	if wrong = errors.Join(err, wrong); wrong != nil {
		wrong = session.FactsError(h.ID(), wrong) // the logs may say why
	}
	output, err := printed(ctx, s, h.ID(), session.Question{Name: "support", Script: scripts.Support()})
	entries, cut := support.Read(output)
	for _, e := range entries {
		files = append(files, support.Entry{Name: e.Name + ".txt", Content: e.Content})
	}
	if err == nil && cut != nil {
		err = fmt.Errorf("%s: gathering logs: %w", h.ID(), cut)
	}
	return files, errors.Join(wrong, err)
}

// printed is what a script prints on a host, as much of it as a bundle takes and as came before an error.
func printed(ctx context.Context, s *session.Session, id string, q session.Question) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &support.Capture{Full: cancel} // what prints without an end is not waited for
	err := s.Listen(ctx, id, q, out)
	if full := out.Err(); full != nil {
		err = fmt.Errorf("%s: %s: %w", id, q.Name, full)
	}
	return out.Bytes(), err
}
