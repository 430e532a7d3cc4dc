package main

import (
	"context"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/sync/errgroup"
)

// surveyor asks, and collects what it finds.
type surveyor struct {
	world
	now  time.Time
	lock sync.Mutex
	rows []row
	keys map[string]func() openpgp.EntityList // by URL
}

func (s *surveyor) add(r row) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.rows = append(s.rows, r)
}

// there adds a row for something that is there or not.
func (s *surveyor) there(is bool, name, where string) {
	r := row{name: name, where: where}
	if !is {
		r.state, r.found = dead, "it is not there"
	}
	s.add(r)
}

// atOnce is how many questions wait for answers at one time.
const atOnce = 8

// survey asks for everything that kgpu names and returns a row for each, worse ones first.
func survey(ctx context.Context, w world, now time.Time) []row {
	s := &surveyor{world: w, now: now, keys: map[string]func() openpgp.EntityList{}}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, ask := range []func() []question{s.kubernetes, s.docker, s.toolkit, s.cuda, s.distributions, s.ppa, s.downloads, s.images} {
		for _, q := range ask() {
			group.Go(func() error { q(ctx); return nil })
		}
	}
	_ = group.Wait() // no question returns an error: what it finds is a row
	s.calendar()
	return sorted(s.rows)
}

// question is one row of inquiries, which go one after the other.
type question func(context.Context)
