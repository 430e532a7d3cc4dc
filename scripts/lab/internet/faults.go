package internet

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// Kind is what a fault does to an answer.
type Kind string

// The kinds of faults.
const (
	Status   Kind = "status"   // the answer is an error
	Truncate Kind = "truncate" // the first half of the answer, as if that were all of it
	Tamper   Kind = "tamper"   // a bit in the middle of the answer is another
	Hang     Kind = "hang"     // no answer, until the client gives up
)

// Fault is what goes wrong with requests for a host's paths with a prefix.
type Fault struct {
	Host       string        `json:"host"`
	Prefix     string        `json:"prefix"` // of the path: /v2/pause/
	Kind       Kind          `json:"kind"`
	Code       int           `json:"code,omitempty"`       // of Status
	RetryAfter time.Duration `json:"retryAfter,omitempty"` // of Status; zero: the answer does not say
	Times      int           `json:"times,omitempty"`      // so many requests more; zero: all
}

// ParseFault reads HOSTNAME/PATHPREFIX and words such as status=429,times=3,retry-after=5 or tamper.
func ParseFault(where, words string) (Fault, error) {
	host, prefix, _ := strings.Cut(where, "/")
	f := Fault{Host: strings.ToLower(host), Prefix: "/" + prefix}
	if !hostName.MatchString(f.Host) {
		return f, fmt.Errorf("%q: want HOSTNAME/PATHPREFIX", where)
	}
	for word := range strings.SplitSeq(words, ",") {
		name, value, _ := strings.Cut(word, "=")
		number, err := strconv.Atoi(value)
		switch {
		case slices.Contains([]Kind{Truncate, Tamper, Hang}, Kind(word)) && f.Kind == "":
			f.Kind = Kind(word)
		case Kind(name) == Status && err == nil && number >= 400 && number <= 599 && f.Kind == "":
			f.Kind, f.Code = Status, number
		case name == "times" && err == nil && number > 0:
			f.Times = number
		case name == "retry-after" && err == nil && number > 0:
			f.RetryAfter = time.Duration(number) * time.Second
		default:
			return f, fmt.Errorf("%q: want status=400…599, truncate, tamper or hang, and times=N, retry-after=SECONDS", word)
		}
	}
	if f.Kind == "" || f.RetryAfter > 0 && f.Kind != Status {
		return f, fmt.Errorf("%q: want one of status=400…599, truncate, tamper, hang; retry-after goes with status", words)
	}
	return f, nil
}

// String is how a fault is listed, and given to add.
func (f Fault) String() string {
	words := string(f.Kind)
	if f.Kind == Status {
		words += "=" + strconv.Itoa(f.Code)
	}
	if f.Times > 0 {
		words += ",times=" + strconv.Itoa(f.Times)
	}
	if f.RetryAfter > 0 {
		words += ",retry-after=" + strconv.Itoa(int(f.RetryAfter/time.Second))
	}
	return f.Host + f.Prefix + " " + words
}

// Faults are those of a lab: a file that the lab's verb writes and its internet reads at each request.
type Faults struct{ File string }

// Add adds a fault; of those that a request meets the first one counts.
func (s Faults) Add(f Fault) error {
	return s.change(func(all []Fault) []Fault { return append(all, f) })
}

// Clear ends all faults.
func (s Faults) Clear() error {
	return s.change(func([]Fault) []Fault { return nil })
}

// List returns the faults there are.
func (s Faults) List() ([]Fault, error) {
	var all []Fault
	_, err := process.Load(s.File, &all)
	return all, err
}

// take returns the fault that a request meets, and counts it.
func (s Faults) take(host, path string, is func(Kind) bool) (*Fault, error) {
	if _, err := os.Stat(s.File); err != nil {
		return nil, ignoreMissing(err)
	}
	var met *Fault
	err := s.change(func(all []Fault) []Fault {
		i := slices.IndexFunc(all, func(f Fault) bool {
			return f.Host == host && strings.HasPrefix(path, f.Prefix) && is(f.Kind)
		})
		if i < 0 {
			return all
		}
		found := all[i]
		met = &found
		if found.Times == 1 {
			return slices.Delete(all, i, i+1)
		}
		if found.Times > 1 {
			all[i].Times--
		}
		return all
	})
	return met, err
}

// change replaces the faults, with nobody else at it. No file: no faults.
func (s Faults) change(f func([]Fault) []Fault) error {
	unlock, err := process.Lock(s.File + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.List()
	if err != nil {
		return err
	}
	before := slices.Clone(all)
	all = f(all)
	switch {
	case slices.Equal(all, before):
		return nil
	case len(all) == 0:
		return ignoreMissing(os.Remove(s.File))
	}
	return process.Save(s.File, all)
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
