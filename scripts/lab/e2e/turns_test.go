package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// longest are the tests that take the longest, in order. They begin first: none of them runs alone at the end.
var longest = []string{
	"TestPlanes", "TestPlanesBehindABalancer", "TestMinorUpgrade", "TestDayTwo", "TestDrivers", "TestAfternoon", "TestRestore", "TestRestoreOfPlanes", "TestDoctor",
	"TestSeededSecrets", "TestCardsInTrouble", "TestDocker", "TestHostFaults", "TestLink", "TestKilled", "TestReset", "TestWeave", "TestRender", "TestFailures", "TestInit", "TestSupport",
}

// mostLabs is how many labs there are at most, and fewLabs how many there are however busy the machine is.
const (
	mostLabs = 8
	fewLabs  = 2
)

func labName(i int) string { return fmt.Sprintf("%s%d", cmp.Or(os.Getenv("KGPU_E2E_LAB"), "e2e"), i+1) }

// turns hands out the labs, one to each test at work, and decides who is next.
type turns struct {
	mu      sync.Mutex
	changed *sync.Cond
	labs    int       // how many there are
	free    []string  // names of those that no test has
	last    time.Time // when one was taken
	waiting []string  // names of tests
}

var labs turns

// open makes as many labs as -parallel says, and has all tests ask for one: the testing package would choose by chance.
func (q *turns) open() error {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	count, err := strconv.Atoi(parallel.String())
	if err != nil {
		return err
	}
	q.changed = sync.NewCond(&q.mu)
	q.labs = min(count, mostLabs)
	for i := range q.labs {
		q.free = append(q.free, labName(i))
	}
	go func() {
		for range time.Tick(time.Second) { // whether the machine is busy nobody else tells
			q.changed.Broadcast()
		}
	}()
	return parallel.Set("1000")
}

// take waits for the test's turn and returns the name of its lab, which is free again when the test has ended. The test runs
// beside others: most of its time it waits.
func (q *turns) take(t *testing.T) string {
	t.Helper()
	q.mu.Lock()
	q.waiting = append(q.waiting, t.Name())
	q.mu.Unlock()
	t.Parallel() // which ends when all tests have come here
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.free) == 0 || q.next() != t.Name() || q.crowded() {
		q.changed.Wait()
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(name string) bool { return name == t.Name() })
	name := q.free[0]
	q.free = q.free[1:]
	q.last = time.Now()
	q.changed.Broadcast()
	t.Cleanup(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.free = append(q.free, name)
		q.changed.Broadcast()
	})
	return name
}

// next is the test whose turn it is.
func (q *turns) next() string {
	for _, name := range longest {
		if slices.Contains(q.waiting, name) {
			return name
		}
	}
	return q.waiting[0]
}

// crowded reports whether one more lab would have too little of the processors: control planes that wait for them too long lose their
// leases, and begin anew. It is so where in half of the last minute something waited for a processor ("some" of the kernel's PSI,
// https://docs.kernel.org/accounting/psi.html), where the kernel does not tell, and where what the last lab needs does not show yet.
func (q *turns) crowded() bool {
	if q.labs-len(q.free) < fewLabs {
		return false
	}
	told, err := os.ReadFile("/proc/pressure/cpu")
	var ten, minute float64
	if err == nil {
		_, err = fmt.Sscanf(string(told), "some avg10=%f avg60=%f", &ten, &minute)
	}
	return err != nil || minute > 50 || time.Since(q.last) < time.Minute
}
