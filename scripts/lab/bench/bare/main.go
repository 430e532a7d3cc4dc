// Command bare is what kgpu's speed is measured by: it runs a script as root on all hosts at the same time, over one SSH
// connection each, reads what it prints, and does nothing else.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func main() {
	user := flag.String("user", "", "login `NAME`")
	key := flag.String("key", "", "private key `FILE`")
	known := flag.String("known-hosts", "", "`FILE` with the hosts' ed25519 keys")
	script := flag.String("script", "", "`FILE` to run")
	flag.Parse()
	if err := run(*user, *key, *known, *script, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(user, key, known, script string, servers []string) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	private, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return err
	}
	trusted, err := knownhosts.New(known)
	if err != nil {
		return err
	}
	config := &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: trusted, HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() { errs[i] = facts(server, config, text) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// facts runs the script on one server and wants the line that it ends with.
func facts(server string, config *ssh.ClientConfig, script []byte) error {
	client, err := ssh.Dial("tcp", server, config)
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	session.Stdin = bytes.NewReader(script)
	out, err := session.Output("sudo -n bash -s")
	if err == nil && !bytes.HasSuffix(out, []byte("\nend=1\n")) {
		err = errors.New("the script did not come to its end")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	return nil
}
