// Command bare is what kgpu's speed is measured by: it runs scripts as root on all hosts at the same time, over one SSH
// connection each, reads what they print, and does nothing else.
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

	"kgpu.dev/kgpu/scripts"
)

// looks are the scripts, with their libraries, as kgpu sends them.
var looks = map[string]func() []byte{"facts": scripts.Facts, "doctor": scripts.Doctor, "status": scripts.Status}

func main() {
	user := flag.String("user", "", "login `NAME`")
	key := flag.String("key", "", "private key `FILE`")
	known := flag.String("known-hosts", "", "`FILE` with the hosts' ed25519 keys")
	together := flag.Bool("together", false, "run a host's scripts at the same time, not one after the other")
	var chosen [][]byte
	flag.Func("script", "`NAME` of what kgpu runs on hosts: facts, doctor or status; once or more", func(name string) error {
		text, ok := looks[name]
		if !ok {
			return fmt.Errorf("there is no script %s", name)
		}
		chosen = append(chosen, text())
		return nil
	})
	flag.Parse()
	if err := run(*user, *key, *known, chosen, *together, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(user, key, known string, scripts [][]byte, together bool, servers []string) error {
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
		wg.Go(func() {
			if err := visit(server, config, scripts, together); err != nil {
				errs[i] = fmt.Errorf("%s: %w", server, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// visit runs the scripts on one server, over one connection.
func visit(server string, config *ssh.ClientConfig, scripts [][]byte, together bool) error {
	client, err := ssh.Dial("tcp", server, config)
	if err != nil {
		return err
	}
	defer client.Close()
	errs := make([]error, len(scripts))
	var wg sync.WaitGroup
	for i, script := range scripts {
		wg.Go(func() { errs[i] = ask(client, script) })
		if !together {
			wg.Wait()
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ask runs a script and wants the line that it ends with.
func ask(client *ssh.Client, script []byte) error {
	session, err := client.NewSession()
	if err != nil {
		return err
	}
	session.Stdin = bytes.NewReader(script)
	out, err := session.Output("sudo -n bash -s")
	if err == nil && !bytes.HasSuffix(out, []byte("\nend=1\n")) {
		err = errors.New("the script did not come to its end")
	}
	return err
}
