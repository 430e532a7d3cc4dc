package prepare

import (
	"errors"
	"os"
	"testing"
)

func TestALookWritesNoNames(t *testing.T) {
	p := newPreparer(t)
	if err := writeFile(p.Site("example.com")+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.lookOnly = true
	if err := p.names(t.Context()); !errors.Is(err, errStale) {
		t.Errorf("a missing list: %v, want %v", err, errStale)
	}
	if _, err := os.Stat(p.Names()); !os.IsNotExist(err) {
		t.Errorf("a look wrote the list: %v", err)
	}
	p.lookOnly = false
	if err := p.names(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.lookOnly = true
	if err := p.names(t.Context()); err != nil {
		t.Errorf("the list that was just written: %v", err)
	}
}
