package command

import (
	"fmt"
	"slices"
	"strings"
)

// synonyms are what other tools call a command of kgpu: kubectl, kubeadm, terraform, docker compose, kind, k3s, minikube.
var synonyms = map[string][]string{
	"up":            {"apply", "bootstrap", "converge", "create", "deploy", "install", "provision", "reconcile", "resume", "retry", "start", "sync"},
	"plan":          {"diff", "dry-run", "preview"},
	"validate":      {"lint"},
	"init":          {"generate", "new"},
	"add-worker":    {"add", "add-node", "join", "scale"},
	"remove-worker": {"delete-node", "evict", "leave", "remove-node"},
	"reset":         {"clean", "delete", "destroy", "down", "nuke", "purge", "remove", "rm", "teardown", "uninstall"},
	"status":        {"gpus", "list", "ls", "nodes", "ps", "top"},
	"doctor":        {"check", "debug", "diagnose", "fix", "health", "repair", "verify"},
	"smoke":         {"prove", "test"},
	"attach":        {"follow", "watch"},
	"runs":          {"history", "log"},
	"kubeconfig":    {"config", "context"},
	"kubectl":       {"cordon", "describe", "drain", "exec", "get", "k", "pods"},
	"ssh":           {"connect", "login", "shell"},
	"notebook":      {"jupyter", "lab"},
	"dashboard":     {"ui", "web"},
	"support":       {"bundle", "report"},
}

// meant names the command that somebody wanted who knows it by another name; empty: none.
func meant(word string) string {
	for command, others := range synonyms {
		if slices.Contains(others, strings.ToLower(word)) {
			return fmt.Sprintf(" Did you mean %q?", command)
		}
	}
	return ""
}

// optionSynonyms are what other tools call an option of kgpu.
var optionSynonyms = map[string][]string{
	"--yes":         {"approve", "assume-yes", "auto-approve", "f", "force", "no-input", "non-interactive"},
	"--inventory":   {"c", "config", "f", "file"},
	"--limit":       {"host", "hosts", "l", "node", "nodes"},
	"--output json": {"json"},
	"--file":        {"o", "out", "output", "f"},
	"--verbose":     {"debug"},
	"--only":        {"tags"},
	"--skip":        {"skip-tags"},
}

// dryRun are what other tools call an option to see what would be done.
var dryRun = []string{"check", "diff", "dry-run", "n", "what-if"}

// meantOption names the option, of those that a command has, that somebody wanted who knows it by another name, or what does
// that; empty: none.
func meantOption(command, word string, have []string) string {
	switch {
	case slices.Contains(dryRun, word) && command == "kgpu up":
		return " kgpu plan says what it would do."
	case slices.Contains(dryRun, word) && slices.Contains(have, "--yes"):
		return " It says what it would do, and asks, before it changes anything."
	}
	for option, others := range optionSynonyms {
		if name, _, _ := strings.Cut(option, " "); slices.Contains(others, word) && slices.Contains(have, name) {
			return fmt.Sprintf(" Did you mean %q?", option)
		}
	}
	return ""
}
