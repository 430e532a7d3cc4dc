package command

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/records"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/inventory"
)

// recorded are the commands whose runs leave a folder: those that run steps. doctor does where its flags say so.
var recorded = []string{"up", "add-worker", "remove-worker", "reset", "smoke", "dashboard", "user create", "user delete"}

// recording is a report that is recorded, too.
type recording struct {
	report.Sink
	recorder *history.Recorder
}

// Emit shows e and records it.
func (r recording) Emit(e event.Event) {
	r.Sink.Emit(e)
	r.recorder.Emit(e)
}

// record lets what t tells from now on be recorded, if the command's runs are. The function that it returns ends that.
func record(c *cli.Context, inv *inventory.Inventory, id string, t *terminal) (ended func(error)) {
	if !slices.Contains(recorded, commandName(c)) && !c.Bool("fix") && !c.Bool("install-watch") {
		return func(error) {}
	}
	shown := t.Sink
	warn := func(err error) {
		shown.Emit(event.Event{Time: time.Now(), Run: id, Kind: event.Warning, Text: err.Error()})
	}
	recorder, err := records.Begin(inv, history.Result{Run: id, Command: commandLine(c), Version: c.App.Version}, warn)
	if err != nil {
		warn(err)
		return func(error) {}
	}
	t.Sink = recording{shown, recorder}
	return func(err error) {
		if outcome(err) == misused {
			recorder.Discard()
			return
		}
		recorder.End(outcome(err), exitStatus(err))
	}
}
