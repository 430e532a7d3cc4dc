// Command netbox is the lab's workload: a web server that says where it runs, and a client that proves the pod network.
//
//	netbox serve :8080     answers "host=… node=… from=…"
//	netbox get URL…        fetches each URL within five seconds and prints the bodies
//	netbox dns NAME…       prints the addresses of each name
//	netbox env             prints the environment
//	netbox ls DIR…         prints the entries of each directory
//	netbox sleep           waits for a signal
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: netbox serve|get|dns|env|ls|sleep ARG…"))
	}
	args := os.Args[2:]
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(args)
	case "get":
		err = each(args, get)
	case "dns":
		err = each(args, dns)
	case "ls":
		err = each(args, ls)
	case "env":
		for _, e := range os.Environ() {
			fmt.Println(e)
		}
	case "sleep":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		<-signals
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "netbox:", err)
	os.Exit(1)
}

func each(args []string, do func(string) error) error {
	for _, a := range args {
		if err := do(a); err != nil {
			return err
		}
	}
	return nil
}

func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: netbox serve ADDRESS")
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("hit", r.RemoteAddr, r.URL.Path)
		fmt.Fprintf(w, "host=%s node=%s from=%s\n", host, os.Getenv("NODE"), r.RemoteAddr)
	}))
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(os.Stdout, r.Body)
	return err
}

func dns(name string) error {
	addresses, err := net.LookupHost(name)
	if err != nil {
		return err
	}
	fmt.Println(name, addresses)
	return nil
}

func ls(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		fmt.Println(filepath.Join(dir, e.Name()))
	}
	return err
}
