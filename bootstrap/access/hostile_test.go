package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report/reporttest"
	"kgpu.dev/kgpu/bootstrap/session"
)

// The kubeconfig of a control plane that lies goes nowhere.
func TestKubeconfigOfAHostThatLies(t *testing.T) {
	was := kubeconfigBounds
	defer func() { kubeconfigBounds = was }()
	for name, c := range map[string]struct {
		sftp func(e *sshtest.Exec) int
		time time.Duration
	}{
		"no sftp":      {func(e *sshtest.Exec) int { sitetest.Pour(e.Stdout, sitetest.Evil, 1<<28); return 0 }, 0},
		"says nothing": {func(e *sshtest.Exec) int { <-e.Gone; return 0 }, time.Second},
		"refuses":      {func(e *sshtest.Exec) int { fmt.Fprint(e.Stderr, sitetest.Evil); return 127 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfigBounds = was
			if c.time > 0 {
				kubeconfigBounds.Time = c.time
			}
			h, o := newAPIHost(t)
			h.sftp = c.sftp
			text, err := shown(t, o, func(o session.Options) error { return Kubeconfig(t.Context(), o, KubeconfigOptions{Out: io.Discard}) })
			if len(reason.All(err)) == 0 || len(text) > 1<<20 {
				t.Errorf("%v: %d bytes reach the terminal", err, len(text))
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Inventory.Path), "*"))
			if len(left) > 0 {
				t.Errorf("files were written: %q", left)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// What a lying control plane has in its kubeconfig ends every story that reads it, with its reason, and nothing of it is on this
// machine afterwards, nor does a program run here with it.
func TestKubeconfigWithMoreInIt(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	must(t, os.WriteFile(kubectl, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755))
	stories := map[string]func(session.Options) error{
		"kubeconfig": func(o session.Options) error { return Kubeconfig(t.Context(), o, KubeconfigOptions{Out: io.Discard}) },
		"print": func(o session.Options) error {
			return Kubeconfig(t.Context(), o, KubeconfigOptions{File: "-", Out: io.Discard})
		},
		"merge": func(o session.Options) error {
			return Kubeconfig(t.Context(), o, KubeconfigOptions{Merge: true, Out: io.Discard})
		},
		"tunnel": func(o session.Options) error { // one that is there ends again
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			return Kubeconfig(ctx, o, KubeconfigOptions{Tunnel: true, Out: writerFunc(func(text []byte) (int, error) {
				cancel()
				return len(text), nil
			})})
		},
		"kubectl": func(o session.Options) error {
			return Kubectl(t.Context(), o, KubectlOptions{Program: kubectl, Args: []string{"get", "nodes"}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
		},
	}
	h, o := newAPIHost(t)
	t.Setenv("KUBECONFIG", filepath.Join(filepath.Dir(o.Inventory.Path), "mine"))
	for name, conf := range clustertest.Evil(content(t, h.conf)) {
		put(t, h.conf, conf)
		want := reason.KubeconfigUntrusted
		if len(conf) > kubeconfig.MaxFromHost {
			want = reason.HostOutputTooLarge
		}
		for command, story := range stories {
			text, err := shown(t, o, story)
			if !errors.Is(err, &reason.Error{ID: want}) || !strings.Contains(text, "cp1") {
				t.Errorf("%s of %s: %v; %s", command, name, err, text)
			}
			if strings.Contains(text, h.key[40:80]) {
				t.Errorf("%s of %s tells the key: %s", command, name, text)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Inventory.Path), "*")); len(left) > 0 {
			t.Errorf("%s: files were written: %q", name, left)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("kubectl was run with it")
	}
}

// shown runs a story and returns what the terminal gets, and the error.
func shown(t *testing.T, o session.Options, story func(session.Options) error) (string, error) {
	t.Helper()
	return reporttest.Shown(t, func(events event.Sink) error {
		o.Events = events
		return story(o)
	})
}
