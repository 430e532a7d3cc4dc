package main

import (
	"strings"
	"testing"
)

func TestOnceEach(t *testing.T) {
	const (
		cp1 = `{"host":"cp1","event":"connect"} {"host":"cp1","event":"command","exit":0} `
		w1  = `{"host":"w1","event":"connect"} {"host":"w1","event":"command","exit":0} `
		ok  = `{"event":"step.skip","reason":"satisfied"} {"event":"result","reason":"ok"}`
	)
	for stream, want := range map[string]string{
		cp1 + w1 + ok:                         "",
		cp1 + w1:                              "kgpu's result is missing",
		cp1 + ok:                              "w1: 0 connections and 0 commands, want one of each",
		cp1 + w1 + w1 + ok:                    "w1: 2 connections and 2 commands, want one of each",
		cp1 + w1 + strings.Fields(w1)[0] + ok: "w1: 2 connections and 1 commands, want one of each",
		cp1 + w1 + `{"` + ok:                  "kgpu's events: ",
		cp1 + w1 + strings.ReplaceAll(cp1, "cp1", "w2") + ok:             "connections to 3 hosts and commands on 3, want 2",
		cp1 + w1 + `{"host":"w1","event":"step.start","step":"os/swap"}`: "w1 had something to do: os/swap",
		cp1 + w1 + `{"event":"result","reason":"SSH_LOST"}`:              "kgpu's result is SSH_LOST",
	} {
		err := onceEach(strings.NewReader(stream), []string{"cp1", "w1"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", stream, err, want)
		}
	}
}

func TestAllReached(t *testing.T) {
	hosts := []string{"cp1", "w1"}
	for text, well := range map[string]bool{
		`{"hosts": [{"host": "cp1", "reached": true}, {"host": "w1", "reached": true}]}`:  true,
		`{"hosts": [{"host": "cp1", "reached": true}, {"host": "w1", "reached": false}]}`: false,
		`{"hosts": [{"host": "cp1", "reached": true}]}`:                                   false,
		``: false,
	} {
		if err := allReached(strings.NewReader(text), hosts); (err == nil) != well {
			t.Errorf("%s: %v", text, err)
		}
	}
}
