package storm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// event is what the storm reads of a line of kgpu's --output json.
type event struct {
	Run    string `json:"run"`
	Host   string `json:"host"` // its address
	Step   string `json:"step"`
	Event  string `json:"event"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// session is a run of kgpu.
type session struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	record *os.File // of what all runs told
	ended  chan struct{}
	late   bool   // the limit ended it
	cutOff string // a last line without an end

	explained []string // reasons with which it may end

	mu        sync.Mutex
	run       string          // its ID
	connected map[string]bool // by address
	follows   map[string]bool // by address: it has told something about a step there
	attached  map[string]bool // by address: it found a former run at work there
	errors    []event
	result    event
	malformed string // the first line that is no event
	doing     string // the last thing that it told
}

// limit bounds a run of kgpu, and of the lab: a hang ends the storm.
const limit = 15 * time.Minute

// startUp starts kgpu up.
func (l *Lab) startUp(ctx context.Context) (_ *session, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.limit, limit))
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	s := &session{
		cmd:   l.kgpu(ctx, "up", "--yes", "--output", "json", l.inventory()),
		ended: make(chan struct{}), connected: map[string]bool{}, follows: map[string]bool{}, attached: map[string]bool{},
		explained: explained,
	}
	if len(l.Cards) > 0 {
		s.explained = slices.Concat(explained, ofCards)
	}
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.record, err = os.OpenFile(l.Record(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.record.Close())
	}
	go func() {
		defer cancel()
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				s.cutOff = string(line)
				break
			}
			_, _ = s.record.Write(line) // for people; nothing depends on it
			s.hear(line)
		}
		_ = s.record.Close()
		_ = s.cmd.Wait() // the exit status is in ProcessState
		s.late = errors.Is(ctx.Err(), context.DeadlineExceeded)
		close(s.ended)
	}()
	return s, nil
}

func (s *session) hear(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Event == "" {
		s.malformed = cmp.Or(s.malformed, string(line))
		return
	}
	s.run = e.Run
	switch e.Event {
	case "connect":
		s.connected[e.Host] = true
	case "step.start", "step.done", "log", "wait":
		if e.Host != "" {
			s.doing = strings.TrimSpace(e.Host + " " + e.Step + " " + e.Text)
			s.follows[e.Host] = true
		}
		if e.Event == "wait" && strings.HasPrefix(e.Text, "a former run") {
			s.attached[e.Host] = true
		}
	case "error":
		s.errors = append(s.errors, e)
	case "result":
		s.result = e
	}
}

func (s *session) isConnected(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected[address]
}

// isListening says whether this run follows that batch on the host: it is its own, or it has told something of it.
func (s *session) isListening(address, batch string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follows[address] || s.run != "" && strings.HasPrefix(batch, s.run+"-")
}

func (s *session) attachments() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.attached)
}

func (s *session) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// last is the last thing that it told.
func (s *session) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doing
}

// kill is kill -9, and returns when the process is gone.
func (s *session) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// wasKilled says whether a run that is over was killed.
func (s *session) wasKilled() bool {
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// exit is the exit status of a run that ended by itself.
func (s *session) exit() int { return s.cmd.ProcessState.ExitCode() }

// why says how a run failed.
func (s *session) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s (exit status %d)", s.result.Reason, s.exit())
	for _, e := range s.errors {
		fmt.Fprintf(&b, "; %s", strings.TrimSpace(fmt.Sprintf("%s %s: %s [%s]", e.Host, e.Step, e.Text, e.Reason)))
	}
	if text := tail(s.stderr.String(), 3); text != "" {
		fmt.Fprintf(&b, "; %s", strings.ReplaceAll(text, "\n", " "))
	}
	return b.String()
}
