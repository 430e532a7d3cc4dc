// Package kubeconfig reads, makes and merges the files that tell kubectl where a cluster is and who asks.
package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"

	"go.yaml.in/yaml/v3"
)

// Access is one way into one cluster.
type Access struct {
	Cluster   string // name of the cluster's entry
	User      string // name of the user's entry
	Context   string // name of the context's entry
	Namespace string // of the context; empty: default

	Server        string // https://host:port
	TLSServerName string // the name in the server's certificate to hold it to; empty: the one in Server
	CA            []byte // certificate authority, PEM
	Certificate   []byte // of the user, PEM
	Key           []byte // of the user, PEM; secret
}

// file is a kubeconfig as far as kgpu writes it.
type file struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Clusters   []clusterEntry `yaml:"clusters"`
	Users      []userEntry    `yaml:"users"`
	Contexts   []contextEntry `yaml:"contexts"`
	Current    string         `yaml:"current-context"`
}

type clusterEntry struct {
	Name    string `yaml:"name"`
	Cluster struct {
		Server        string `yaml:"server"`
		TLSServerName string `yaml:"tls-server-name,omitempty"`
		CA            string `yaml:"certificate-authority-data"`
	} `yaml:"cluster"`
}

type userEntry struct {
	Name string `yaml:"name"`
	User struct {
		Certificate string `yaml:"client-certificate-data"`
		Key         string `yaml:"client-key-data"`
	} `yaml:"user"`
}

type contextEntry struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster   string `yaml:"cluster"`
		User      string `yaml:"user"`
		Namespace string `yaml:"namespace,omitempty"`
	} `yaml:"context"`
}

// Parse reads a kubeconfig of this machine, of one cluster and one user with its certificates in it, such as kgpu makes; FromHost
// reads what a host has sent. Its errors do not repeat what is in the file.
func Parse(data []byte) (*Access, error) {
	var f file
	if err := yaml.Unmarshal(data, &f); err != nil {
		return nil, errNoKubeconfig
	}
	if len(f.Clusters) != 1 || len(f.Users) != 1 {
		return nil, fmt.Errorf("%d clusters and %d users, one of each expected", len(f.Clusters), len(f.Users))
	}
	c, u := f.Clusters[0], f.Users[0]
	a := &Access{Cluster: c.Name, User: u.Name, Context: f.Current, Server: c.Cluster.Server, TLSServerName: c.Cluster.TLSServerName}
	for _, part := range []struct {
		name, encoded string
		to            *[]byte
	}{
		{"certificate-authority-data", c.Cluster.CA, &a.CA},
		{"client-certificate-data", u.User.Certificate, &a.Certificate},
		{"client-key-data", u.User.Key, &a.Key},
	} {
		var err error
		if *part.to, err = base64.StdEncoding.DecodeString(part.encoded); err != nil || len(*part.to) == 0 {
			return nil, fmt.Errorf("there is no %s in it, or it is not base64", part.name)
		}
	}
	if _, err := a.Address(); err != nil {
		return nil, err
	}
	return a, nil
}

// Alone reports whether a kubeconfig has no more than one cluster and one user in it.
func Alone(data []byte) bool {
	var f file
	return yaml.Unmarshal(data, &f) == nil && len(f.Clusters) <= 1 && len(f.Users) <= 1 && len(f.Contexts) <= 1
}

// Encode is a kubeconfig with nothing else in it. It is secret.
func (a *Access) Encode() ([]byte, error) { return yaml.Marshal(a.file()) }

// EncodeWay is a kubeconfig without the user, whom another file has to have. It is not secret.
func (a *Access) EncodeWay() ([]byte, error) {
	f := a.file()
	f.Users = nil
	return yaml.Marshal(f)
}

func (a *Access) file() file {
	f := file{APIVersion: "v1", Kind: "Config", Current: a.Context}
	f.Clusters, f.Users, f.Contexts = make([]clusterEntry, 1), make([]userEntry, 1), make([]contextEntry, 1)
	c, u, x := &f.Clusters[0], &f.Users[0], &f.Contexts[0]
	c.Name, c.Cluster.Server, c.Cluster.TLSServerName = a.Cluster, a.Server, a.TLSServerName
	c.Cluster.CA = base64.StdEncoding.EncodeToString(a.CA)
	u.Name = a.User
	u.User.Certificate, u.User.Key = base64.StdEncoding.EncodeToString(a.Certificate), base64.StdEncoding.EncodeToString(a.Key)
	x.Name, x.Context.Cluster, x.Context.User, x.Context.Namespace = a.Context, a.Cluster, a.User, a.Namespace
	return f
}

// Address is the server's host:port.
func (a *Access) Address() (string, error) {
	u, err := url.Parse(a.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("its server is not an address of the form https://HOST:PORT")
	}
	if u.Port() == "" {
		return u.Host + ":443", nil
	}
	return u.Host, nil
}

// Name is what the server's certificate must have: a DNS name or an IP address.
func (a *Access) Name() string {
	if a.TLSServerName != "" {
		return a.TLSServerName
	}
	u, err := url.Parse(a.Server)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// TLS is how a client knows the server. It does not say who asks.
func (a *Access) TLS() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.CA) {
		return nil, errors.New("its certificate authority is not a certificate")
	}
	return &tls.Config{RootCAs: pool, ServerName: a.Name(), MinVersion: tls.VersionTLS12}, nil
}
