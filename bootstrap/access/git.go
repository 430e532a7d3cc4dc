package access

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"
)

// gitTime bounds how long git may look at its own files, on a disk that may be a network's.
const gitTime = 5 * time.Second

// inGit reports whether git would take a file along: it is in a work tree, and nothing makes git ignore it. Without git, or
// where git has no answer, it is not. No program that the folder's own configuration names is run.
// Source: git-check-ignore(1), "EXIT STATUS".
func inGit(path string) bool {
	git, err := exec.LookPath("git")
	if err != nil {
		return false
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	const notIgnored = 1
	err = exec.CommandContext(ctx, git, "-c", "core.fsmonitor=false", "-C", filepath.Dir(path), "check-ignore", "--quiet", "--", path).Run()
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == notIgnored
}

// ignoreLine is the line of a .gitignore beside a kubeconfig that makes git ignore it.
func ignoreLine(path string) string {
	if filepath.Ext(path) == kubeconfigExtension {
		return "*" + kubeconfigExtension
	}
	return "/" + filepath.Base(path)
}

// WarnOfGit warns of a kubeconfig that git would take along, to all who have the repository.
func (c *Cluster) WarnOfGit(path string) {
	if inGit(path) {
		c.Warn("%s opens the cluster to whoever has it, and git would take it along: put the line `%s` into %s, and should it be committed already, `git rm --cached` it",
			path, ignoreLine(path), filepath.Join(filepath.Dir(path), ".gitignore"))
	}
}
