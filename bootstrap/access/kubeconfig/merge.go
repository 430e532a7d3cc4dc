package kubeconfig

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ConflictError is an entry that has the name of ours and is somebody else's.
type ConflictError struct {
	Kind string // cluster, user or context
	Name string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("there is a %s %q already, of another cluster", e.Kind, e.Name)
}

// mark is the extension by which entries that kgpu made are recognised; kubectl keeps extensions, and not comments.
const mark = "kgpu.dev"

// Merge adds the entries of a to a kubeconfig, or brings those up to date that are there; everything else stays, with its
// comments. origin is the inventory: an entry that kgpu made of the same inventory is replaced even when the cluster was
// made anew. An entry of the same name that is somebody else's is a *ConflictError, and nothing is changed. The current
// context becomes that of a when use is set. dir is the folder that paths in the file are relative to.
func Merge(data []byte, a *Access, origin, dir string, use bool) ([]byte, error) {
	root, top, err := decode(data)
	if err != nil {
		return nil, err
	}
	m := merger{top: top, access: a, origin: origin, dir: dir}
	for _, step := range []func() error{m.cluster, m.user, m.context} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if use {
		set(top, "current-context", text(a.Context))
	}
	return encode(root)
}

func encode(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(root), enc.Close())
	return out.Bytes(), err
}

// decode reads a kubeconfig as nodes, which keep comments and what kgpu does not know. Nothing at all is an empty one.
func decode(data []byte) (root, top *yaml.Node, err error) {
	root = &yaml.Node{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(root); {
	case errors.Is(err, io.EOF):
		top = &yaml.Node{Kind: yaml.MappingNode, HeadComment: strings.TrimSpace(string(data))} // nothing else was in it
		root = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{top}}
		set(top, "apiVersion", text("v1"))
		set(top, "kind", text("Config"))
		return root, top, nil
	case err != nil:
		return nil, nil, errors.New("it is not YAML") // the error may repeat a key
	}
	top = root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		*top = yaml.Node{Kind: yaml.MappingNode, HeadComment: top.HeadComment, FootComment: top.FootComment}
	}
	if kind := get(top, "kind"); top.Kind != yaml.MappingNode || kind != nil && kind.Value != "Config" {
		return nil, nil, errors.New("it is not a kubeconfig")
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("it has more than one document")
	}
	return root, top, nil
}

// merger puts the three entries into a file.
type merger struct {
	top         *yaml.Node
	access      *Access
	origin, dir string
	same        bool // the file's cluster of that name is this one
}

func (m *merger) cluster() error {
	entry, err := m.entry("clusters", m.access.Cluster)
	if err != nil {
		return err
	}
	old := get(entry, "cluster")
	m.same = old != nil && sameCertificates(m.data(old, "certificate-authority"), m.access.CA)
	if old != nil && !m.same && !m.ours(old) {
		return &ConflictError{"cluster", m.access.Cluster}
	}
	c := changed(old, "certificate-authority", "insecure-skip-tls-verify", "tls-server-name")
	set(c, "server", text(m.access.Server))
	if m.access.TLSServerName != "" {
		set(c, "tls-server-name", text(m.access.TLSServerName))
	}
	set(c, "certificate-authority-data", text(base64.StdEncoding.EncodeToString(m.access.CA)))
	m.put(entry, "cluster", c)
	return nil
}

func (m *merger) user() error {
	entry, err := m.entry("users", m.access.User)
	if err != nil {
		return err
	}
	old := get(entry, "user")
	if old != nil && !m.ours(old) && !signedBy(m.data(old, "client-certificate"), m.access.CA) {
		return &ConflictError{"user", m.access.User}
	}
	u := changed(old, "client-certificate", "client-key", "token", "tokenFile", "username", "password", "exec", "auth-provider")
	set(u, "client-certificate-data", text(base64.StdEncoding.EncodeToString(m.access.Certificate)))
	set(u, "client-key-data", text(base64.StdEncoding.EncodeToString(m.access.Key)))
	m.put(entry, "user", u)
	return nil
}

// context keeps the namespace that somebody has set.
func (m *merger) context() error {
	entry, err := m.entry("contexts", m.access.Context)
	if err != nil {
		return err
	}
	old := get(entry, "context")
	if old != nil && !m.ours(old) {
		if name := get(old, "cluster"); name == nil || name.Value != m.access.Cluster || !m.same {
			return &ConflictError{"context", m.access.Context}
		}
	}
	c := changed(old)
	set(c, "cluster", text(m.access.Cluster))
	set(c, "user", text(m.access.User))
	if m.access.Namespace != "" && get(c, "namespace") == nil {
		set(c, "namespace", text(m.access.Namespace))
	}
	m.put(entry, "context", c)
	return nil
}

// changed is the old value of an entry without the keys that would contradict the new ones; whatever else somebody has set
// stays.
func changed(old *yaml.Node, without ...string) *yaml.Node {
	if old == nil || old.Kind != yaml.MappingNode {
		return &yaml.Node{Kind: yaml.MappingNode}
	}
	out := *old
	out.Content = nil
	for i := 0; i+1 < len(old.Content); i += 2 {
		if !slices.Contains(without, old.Content[i].Value) {
			out.Content = append(out.Content, old.Content[i], old.Content[i+1])
		}
	}
	return &out
}

// put sets the entry's value, and marks it as ours.
func (m *merger) put(entry *yaml.Node, key string, value *yaml.Node) {
	if !m.ours(value) {
		extension := mapping("name", mark)
		set(extension, "extension", mapping("inventory", m.origin))
		list := &yaml.Node{Kind: yaml.SequenceNode}
		if have := get(value, "extensions"); have != nil && have.Kind == yaml.SequenceNode {
			list.Content = slices.DeleteFunc(slices.Clone(have.Content), func(e *yaml.Node) bool {
				name := get(e, "name")
				return name != nil && name.Value == mark
			})
		}
		list.Content = append(list.Content, extension)
		set(value, "extensions", list)
	}
	set(entry, key, value)
}

// ours reports whether kgpu made the value, of the same inventory.
func (m *merger) ours(value *yaml.Node) bool {
	list := get(value, "extensions")
	if list == nil {
		return false
	}
	for _, e := range list.Content {
		if name := get(e, "name"); name != nil && name.Value == mark {
			origin := get(get(e, "extension"), "inventory")
			return origin != nil && origin.Value == m.origin
		}
	}
	return false
}

// entry is the one of this name in a list, which is made where it is missing.
func (m *merger) entry(list, name string) (*yaml.Node, error) {
	all := get(m.top, list)
	if all == nil || all.Kind == yaml.ScalarNode && all.Tag == "!!null" {
		all = &yaml.Node{Kind: yaml.SequenceNode}
		set(m.top, list, all)
	}
	if all.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("its %s are not a list", list)
	}
	for _, e := range all.Content {
		if n := get(e, "name"); n != nil && n.Value == name {
			return e, nil
		}
	}
	if len(all.Content) == 0 {
		all.Style = 0 // kubectl writes an empty list as []
	}
	e := mapping("name", name)
	all.Content = append(all.Content, e)
	return e, nil
}

// data is what a value has under key-data, or in the file that it has under key.
func (m *merger) data(value *yaml.Node, key string) []byte {
	if n := get(value, key+"-data"); n != nil {
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			return nil
		}
		return data
	}
	n := get(value, key)
	if n == nil || n.Value == "" {
		return nil
	}
	path := n.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.dir, path)
	}
	data, _ := os.ReadFile(path) // of what cannot be read nothing is known
	return data
}

// sameCertificates reports whether two PEM files begin with the same certificate.
func sameCertificates(a, b []byte) bool {
	one, two := firstCertificate(a), firstCertificate(b)
	return one != nil && two != nil && one.Equal(two)
}

// signedBy reports whether a certificate was signed by the first one of an authority.
func signedBy(certificate, authority []byte) bool {
	cert, ca := firstCertificate(certificate), firstCertificate(authority)
	return cert != nil && ca != nil && cert.CheckSignatureFrom(ca) == nil
}

func firstCertificate(data []byte) *x509.Certificate {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	cert, _ := x509.ParseCertificate(block.Bytes)
	return cert
}

// get is the value of a key; nil where there is none, or n is no mapping.
func get(n *yaml.Node, key string) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			if v := n.Content[i+1]; v.Kind == yaml.AliasNode {
				return v.Alias
			}
			return n.Content[i+1]
		}
	}
	return nil
}

// set gives a key of a mapping a value, in its old place where it has one.
func set(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, text(key), value)
}

func text(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	return &n
}

func mapping(key, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text(key), text(value)}}
}

// Forget is a kubeconfig without what Merge added to it for the cluster of this name and of the inventory origin; a current context
// that goes is none. What was renamed by its owner since is theirs.
func Forget(data []byte, cluster, origin string) ([]byte, error) {
	root, top, err := decode(data)
	if err != nil {
		return nil, err
	}
	m := merger{origin: origin}
	gone := false
	drop := func(list, key string, mine func(name string, value *yaml.Node) bool) {
		all := get(top, list)
		if all == nil {
			return
		}
		all.Content = slices.DeleteFunc(all.Content, func(e *yaml.Node) bool {
			name, value := get(e, "name"), get(e, key)
			goes := name != nil && m.ours(value) && mine(name.Value, value)
			if current := get(top, "current-context"); goes && list == "contexts" && current != nil && current.Value == name.Value {
				set(top, "current-context", text(""))
			}
			gone = gone || goes
			return goes
		})
		if len(all.Content) == 0 && all.Kind == yaml.SequenceNode {
			all.Style = yaml.FlowStyle // as kubectl writes an empty list
		}
	}
	called := func(want string) func(string, *yaml.Node) bool {
		return func(name string, _ *yaml.Node) bool { return name == want }
	}
	drop("contexts", "context", func(_ string, value *yaml.Node) bool {
		of := get(value, "cluster")
		return of != nil && of.Value == cluster
	})
	drop("clusters", "cluster", called(cluster))
	drop("users", "user", called(cluster+"-admin"))
	if !gone {
		return data, nil
	}
	return encode(root)
}
