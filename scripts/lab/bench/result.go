package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// limit is how many times as long as the bare program kgpu may take.
const limit = 1.5

// errSlow says that kgpu took longer.
var errSlow = fmt.Errorf("kgpu took more than %.1f times as long", limit)

// errLate says that kgpu took longer than it may.
var errLate = errors.New("kgpu took longer than is promised")

// result is the times of a case, sorted.
type result struct {
	name       string
	kgpu, bare []time.Duration
	most       time.Duration // that kgpu may take; zero: no matter
}

func (r result) ratio() float64 { return float64(median(r.kgpu)) / float64(median(r.bare)) }

func (r result) String() string {
	return fmt.Sprintf("%s: kgpu %s, bare %s, ratio %.2f", r.name, spread(r.kgpu), spread(r.bare), r.ratio())
}

// median of sorted times.
func median(times []time.Duration) time.Duration {
	return (times[(len(times)-1)/2] + times[len(times)/2]) / 2
}

// spread is the median of sorted times, with the shortest and the longest.
func spread(times []time.Duration) string {
	return fmt.Sprintf("%.2f s (%.2f–%.2f)", median(times).Seconds(), times[0].Seconds(), times[len(times)-1].Seconds())
}

func printTable(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nmedian of %d (shortest–longest)\tkgpu\tbare program\tratio\n", rounds)
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\n", r.name, spread(r.kgpu), spread(r.bare), r.ratio())
	}
	return w.Flush()
}

// judge fails where kgpu was too slow.
func judge(results []result) error {
	var errs []error
	for _, r := range results {
		if r.ratio() > limit {
			errs = append(errs, fmt.Errorf("%s: %w: %.2f", r.name, errSlow, r.ratio()))
		}
		if took := median(r.kgpu); r.most > 0 && took > r.most {
			errs = append(errs, fmt.Errorf("%s: %w: %s", r.name, errLate, took))
		}
	}
	return errors.Join(errs...)
}
