// Command chaos makes a cluster on lab hosts again and again, or upgrades one, while kgpu, the hosts and their network fail: hundreds
// of faults, at points that a seed chooses. After each round the cluster must be what an undisturbed run makes, and reset must
// leave nothing. Exit status 1: a fault was lost, which means that the cluster did not come out right, or one that must
// strike a step never did; what to type to see it again is printed. 2: the storm itself failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"kgpu.dev/kgpu/scripts/lab/chaos/storm"
	"kgpu.dev/kgpu/scripts/lab/place"
)

// weights are how often which fault strikes.
var weights = map[string]int{
	storm.Kill: 12, storm.Reboot: 2, storm.Power: 3, storm.Cut: 2, storm.Lock: 2, storm.Unit: 3, storm.Dpkg: 2,
}

// perRound is how many faults there are in a round: more would leave kgpu no time to do anything.
const perRound = 14

// errLost says that a fault was lost.
var errLost = errors.New("lost")

// options are the flags.
type options struct {
	seed   uint64
	faults int
	only   int
	cards  bool
	disks  bool
	day2   bool
}

// cards are those of a storm with cards. NVSwitches want a step of their own.
var cards = []string{"w1=2xA100,nvswitch"}

// The versions of Kubernetes that an upgrade goes from, and to: the lab has both.
const before, after = "1.36.2", "1.36.3"

func main() {
	o := options{}
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "what decides where which fault strikes")
	flag.IntVar(&o.faults, "faults", 250, "how many faults are planned, beside a kill, a power cut and a reboot in each step; some find no occasion")
	flag.IntVar(&o.only, "only", 0, "only the fault with this number in the schedule")
	flag.BoolVar(&o.cards, "cards", false, "a worker has cards (the lab's stand-ins), so that there are the steps for them, too")
	flag.BoolVar(&o.disks, "disks", false, "/ and /var of each host are file systems of their own, which lose at a power cut what nobody synced")
	flag.BoolVar(&o.day2, "day2", false, "the faults strike an upgrade of a cluster with cards that is there, instead of one that comes up")
	flag.Parse()
	if o.day2 && !given("faults") {
		o.faults = 40
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop() // not before: a second Ctrl-C must not end the cleaning up
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "chaos:", err)
	if errors.Is(err, errLost) {
		os.Exit(1)
	}
	os.Exit(2)
}

// given says whether somebody set the flag.
func given(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

func run(ctx context.Context, o options) (err error) {
	if flag.NArg() > 0 || o.faults < 0 || o.only < 0 {
		return errors.New("usage: chaos [-day2] [-cards] [-disks] [-seed N] [-faults N] [-only N]")
	}
	dir, err := os.MkdirTemp("", "kgpu-chaos-")
	if err != nil {
		return err
	}
	name := "chaos"
	if o.day2 {
		name = "chaos-day2"
	}
	p, err := place.New(name)
	if err != nil {
		return err
	}
	l := &storm.Lab{Place: p, Program: filepath.Join(dir, "lab"), Kgpu: filepath.Join(dir, "kgpu"), Hosts: []string{"cp1", "w1", "w2"}, Disks: o.disks}
	if o.cards || o.day2 {
		l.Cards = cards
	}
	for program, source := range map[string]string{l.Program: ".", l.Kgpu: "../.."} {
		if err := build(ctx, program, source); err != nil {
			return err
		}
	}
	defer func() {
		err = errors.Join(err, l.Destroy())
		if !errors.Is(err, errLost) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	fmt.Println("making three hosts")
	if err := storm.Open(ctx, l, dir); err != nil {
		return err
	}
	st := &storm.Storm{Lab: l, Out: os.Stdout}
	if o.day2 {
		st.Upgrade = storm.Upgrade{From: before, To: after}
	}
	return weather(ctx, st, o)
}

// weather lets the storm of these options go by.
func weather(ctx context.Context, s *storm.Storm, o options) error {
	fmt.Printf("what two runs may differ in:\n%s\n", storm.AllowList)
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	wishes := everyStepGoesDown(s.Steps)
	schedule := storm.NewSchedule(o.seed, s.Steps, storm.Want{
		Hits: o.faults, Faults: weights, Wishes: wishes, Rounds: (o.faults + len(wishes) + perRound - 1) / perRound,
	})
	if o.only > 0 {
		var err error
		if schedule, err = schedule.Only(o.only); err != nil {
			return err
		}
	}
	if err := schedule.Print(os.Stdout); err != nil {
		return err
	}
	failure := s.Run(ctx, schedule, storm.Least{})
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err := s.Tally.Print(os.Stdout); err != nil {
		return err
	}
	if failure == nil {
		return nil
	}
	return fmt.Errorf("%w: %w\n%s", errLost, failure, replay(o, s))
}

// everyStepGoesDown wishes that a host loses power, and that one reboots, in every step.
func everyStepGoesDown(steps []storm.Ref) []storm.Wish {
	var wishes []storm.Wish
	seen := map[string]bool{}
	for _, ref := range steps {
		if !seen[ref.Step] {
			seen[ref.Step] = true
			for _, fault := range []string{storm.Power, storm.Reboot} {
				wishes = append(wishes, storm.Wish{Step: ref.Step, Faults: []string{fault}})
			}
		}
	}
	return wishes
}

// replay says how to see a failure again, and what there is to read.
func replay(o options, s *storm.Storm) string {
	text := fmt.Sprintf("again: go run ./chaos -seed %d -faults %d", o.seed, o.faults)
	if o.day2 {
		text += " -day2"
	}
	if o.cards {
		text += " -cards"
	}
	if o.disks {
		text += " -disks"
	}
	if o.only > 0 {
		text += fmt.Sprintf(" -only %d", o.only)
	} else {
		text += ", with -only N for one fault of the round alone"
	}
	return text + "\nthe events of all runs: " + s.Lab.Record()
}

func build(ctx context.Context, program, source string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", source, err, said.String())
	}
	return nil
}
