package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// allReached reads the object that kgpu doctor or status prints and wants all hosts in it, and that each has told what it is.
func allReached(object io.Reader, hosts []string) error {
	var report struct {
		Hosts []struct {
			Host    string
			Reached bool
		}
	}
	if err := json.NewDecoder(object).Decode(&report); err != nil {
		return fmt.Errorf("kgpu's report: %w", err)
	}
	var reached []string
	for _, h := range report.Hosts {
		if h.Reached {
			reached = append(reached, h.Host)
		}
	}
	if !slices.Equal(reached, hosts) {
		return fmt.Errorf("kgpu reached %v, want %v", reached, hosts)
	}
	return nil
}

// onceEach reads kgpu's stream of events and wants one connection and one command for each host, no step and no other
// result than ok.
func onceEach(stream io.Reader, hosts []string) error {
	connects, commands := map[string]int{}, map[string]int{}
	result := "missing"
	for d := json.NewDecoder(stream); ; {
		var e struct{ Host, Step, Event, Reason string }
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("kgpu's events: %w", err)
		}
		switch e.Event {
		case "connect":
			connects[e.Host]++
		case "command":
			commands[e.Host]++
		case "step.start":
			return fmt.Errorf("%s had something to do: %s", e.Host, e.Step)
		case "result":
			result = e.Reason
		}
	}
	if result != "ok" {
		return fmt.Errorf("kgpu's result is %s", result)
	}
	for _, h := range hosts {
		if connects[h] != 1 || commands[h] != 1 {
			return fmt.Errorf("%s: %d connections and %d commands, want one of each", h, connects[h], commands[h])
		}
	}
	if len(connects) != len(hosts) || len(commands) != len(hosts) {
		return fmt.Errorf("connections to %d hosts and commands on %d, want %d", len(connects), len(commands), len(hosts))
	}
	return nil
}
